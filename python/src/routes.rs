//! One environment of routing whose observations are arrays of NumPy, as those of jobs.

use numpy::PyArray1;
use pleach_experiments::serving::{describe_routing, routing_environment, routing_ids, routing_settings};
use pleach_serving::llm::{ROUTING_2, Routing, SCHEMA};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::buffers::{Buffers, lend};
use crate::errors::{guarded, of_experiment};
use crate::figures::{self, FeatureRow};

/// Gateways in front of replicas.
#[pyclass(module = "pleach._pleach")]
pub(crate) struct Routes {
    env: Routing,
    buffers: Buffers,
}

#[pymethods]
impl Routes {
    #[new]
    fn new(py: Python<'_>, id: &str, changes: &str) -> PyResult<Routes> {
        let env = py.detach(|| guarded(|| routing_environment(id, changes)))?;
        let env = env.map_err(of_experiment)?;
        let rows = env.rows();
        let buffers = Buffers {
            global: PyArray1::zeros(py, rows.context.len(), false).unbind(),
            candidates: PyArray1::zeros(py, rows.rows.len(), false).unbind(),
            mask: PyArray1::from_vec(py, vec![1; rows.mask.len()]).unbind(),
        };
        Ok(Routes { env, buffers })
    }

    /// G, C, F.
    fn sizes(&self) -> (usize, usize, usize) {
        (ROUTING_2.num_context, self.env.num_choices(), ROUTING_2.num_row)
    }

    /// The arrays by name, flat and writeable: not for users.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.buffers.by_name(py)
    }

    /// Features of the context, then those of a row.
    fn features(&self) -> [Vec<FeatureRow>; 2] {
        figures::features(&SCHEMA, &ROUTING_2)
    }

    /// Begins an episode.
    fn reset(&mut self, py: Python<'_>, seed: u64) -> PyResult<()> {
        let env = &mut self.env;
        let done = py.detach(|| guarded(|| env.reset(seed)))?;
        done.map_err(of_experiment)?;
        self.show(py)
    }

    /// Routes a request: reward, whether it was the last, seconds until the next.
    fn step(&mut self, py: Python<'_>, action: i64) -> PyResult<(f64, bool, f64)> {
        let row = usize::try_from(action).unwrap_or(usize::MAX);
        let step = guarded(|| self.env.step(row))?.map_err(of_experiment)?;
        self.show(py)?;
        Ok((step.reward, step.is_last, step.dt_s))
    }

    /// Figures of the episode that has just ended, once.
    fn episode<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let targets = self.env.targets();
        let Some(outcome) = self.env.take_outcome() else {
            return Ok(None);
        };
        let figures = PyDict::new(py);
        let at = |part: f64| outcome.quantile(part, |served| served.ttft_s);
        let reused = outcome.reused_tokens as f64 / outcome.prompt_tokens.max(1) as f64;
        for (name, value) in [
            ("num_requests", outcome.requests.len() as f64),
            ("hits_pct", 100.0 * outcome.hit_share(targets)),
            ("refused_pct", 100.0 * outcome.refused_share()),
            ("ttft_p50_s", at(0.5)),
            ("ttft_p99_s", at(0.99)),
            ("tpot_p99_s", outcome.quantile(0.99, |served| served.tpot_s)),
            ("reused_pct", 100.0 * reused),
            ("makespan_s", outcome.makespan_s),
        ] {
            figures.set_item(name, value)?;
        }
        Ok(Some(figures))
    }
}

impl Routes {
    /// Writes the rows into the arrays.
    fn show(&mut self, py: Python<'_>) -> PyResult<()> {
        let rows = self.env.rows();
        for (array, values) in [
            (&self.buffers.global, rows.context),
            (&self.buffers.candidates, rows.rows),
        ] {
            let mut lent = lend(py, array)?;
            let to = lent
                .as_slice_mut()
                .map_err(|error| PyValueError::new_err(error.to_string()))?;
            to.copy_from_slice(values);
        }
        Ok(())
    }
}

/// Ids of the environments of routing, each with a line.
#[pyfunction]
pub(crate) fn routing_names() -> Vec<(&'static str, &'static str)> {
    routing_ids()
        .map(|id| (id, describe_routing(id).unwrap_or_default()))
        .collect()
}

/// The keys of their settings.
#[pyfunction]
pub(crate) fn routing_setting_names() -> Vec<String> {
    routing_settings()
}
