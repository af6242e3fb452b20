//! One environment of routing or autoscaling whose observations are arrays of NumPy, as those of jobs.

use numpy::PyArray1;
use pleach_experiments::error::Error;
use pleach_experiments::serving::{
    MixedDay, Scaling, describe_serving, routing_environment, routing_ids, routing_settings,
    scaling_environment, scaling_ids, scaling_settings,
};
use pleach_scheduler::Rows;
use pleach_serving::llm::{AUTOSCALING, AUTOSCALING_1, Outcome, ROUTING_2, Routing, SCHEMA, Targets};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::buffers::{Buffers, lend};
use crate::errors::{guarded, of_experiment};
use crate::figures::{self, FeatureRow};

/// What is stepped.
enum Env {
    Routing(Box<Routing>),
    Scaling(Box<Scaling>),
}

impl Env {
    fn open(id: &str, changes: &str) -> Result<Env, Error> {
        if scaling_ids().any(|known| known == id) {
            return Ok(Env::Scaling(Box::new(scaling_environment(id, changes)?)));
        }
        Ok(Env::Routing(Box::new(routing_environment(id, changes)?)))
    }

    fn rows(&self) -> Rows<'_> {
        match self {
            Env::Routing(env) => env.rows(),
            Env::Scaling(env) => env.rows(),
        }
    }

    fn reset(&mut self, seed: u64) -> Result<(), Error> {
        match self {
            Env::Routing(env) => Ok(env.reset(seed)?),
            Env::Scaling(env) => env.reset(seed),
        }
    }

    /// Reward, whether it was the last, seconds until the next.
    fn step(&mut self, row: usize) -> Result<(f64, bool, f64), Error> {
        match self {
            Env::Routing(env) => {
                let step = env.step(row)?;
                Ok((step.reward, step.is_last, step.dt_s))
            }
            Env::Scaling(env) => {
                let step = env.step(row)?;
                Ok((step.reward, step.is_last, step.dt_s))
            }
        }
    }
}

/// Gateways in front of replicas, or an autoscaler beside training.
#[pyclass(module = "pleach._pleach")]
pub(crate) struct Routes {
    env: Env,
    buffers: Buffers,
}

#[pymethods]
impl Routes {
    #[new]
    fn new(py: Python<'_>, id: &str, changes: &str) -> PyResult<Routes> {
        let env = py.detach(|| guarded(|| Env::open(id, changes)))?;
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
        let rows = self.env.rows();
        (rows.context.len(), rows.mask.len(), rows.width)
    }

    /// The arrays by name, flat and writeable: not for users.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.buffers.by_name(py)
    }

    /// Features of the context, then those of a row.
    fn features(&self) -> [Vec<FeatureRow>; 2] {
        match &self.env {
            Env::Routing(_) => figures::features(&SCHEMA, &ROUTING_2),
            Env::Scaling(_) => figures::features(&AUTOSCALING, &AUTOSCALING_1),
        }
    }

    /// Begins an episode.
    fn reset(&mut self, py: Python<'_>, seed: u64) -> PyResult<()> {
        let env = &mut self.env;
        let done = py.detach(|| guarded(|| env.reset(seed)))?;
        done.map_err(of_experiment)?;
        self.show(py)
    }

    /// Takes a row: reward, whether it was the last, seconds until the next.
    fn step(&mut self, py: Python<'_>, action: i64) -> PyResult<(f64, bool, f64)> {
        let row = usize::try_from(action).unwrap_or(usize::MAX);
        let step = guarded(|| self.env.step(row))?.map_err(of_experiment)?;
        self.show(py)?;
        Ok(step)
    }

    /// Figures of the episode that has just ended, once.
    fn episode<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let ended = match &mut self.env {
            Env::Routing(env) => {
                let targets = env.targets();
                env.take_outcome().map(|outcome| of_requests(&outcome, targets))
            }
            Env::Scaling(env) => env.take_day().map(|(day, missed)| of_day(&day, missed)),
        };
        let Some(ended) = ended else {
            return Ok(None);
        };
        let figures = PyDict::new(py);
        for (name, value) in ended {
            figures.set_item(name, value)?;
        }
        Ok(Some(figures))
    }
}

fn of_requests(outcome: &Outcome, targets: Targets) -> Vec<(&'static str, f64)> {
    let at = |part: f64| outcome.quantile(part, |served| served.ttft_s);
    let reused = outcome.reused_tokens as f64 / outcome.prompt_tokens.max(1) as f64;
    vec![
        ("num_requests", outcome.requests.len() as f64),
        ("hits_pct", 100.0 * outcome.hit_share(targets)),
        ("refused_pct", 100.0 * outcome.refused_share()),
        ("ttft_p50_s", at(0.5)),
        ("ttft_p99_s", at(0.99)),
        ("tpot_p99_s", outcome.quantile(0.99, |served| served.tpot_s)),
        ("reused_pct", 100.0 * reused),
        ("makespan_s", outcome.makespan_s),
    ]
}

fn of_day(day: &MixedDay, missed: f64) -> Vec<(&'static str, f64)> {
    vec![
        ("num_requests", day.num_requests),
        ("missed_requests", missed),
        ("hits_pct", day.hits_pct),
        ("training_gpu_h", day.training_gpu_h),
        ("serving_gpu_h", day.serving_gpu_h),
        ("lost_gpu_h", day.lost_gpu_h),
        ("moves", day.moves),
        ("preemptions", day.preemptions),
    ]
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
        let mut mask = lend(py, &self.buffers.mask)?;
        let to = mask
            .as_slice_mut()
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        for (to, may) in to.iter_mut().zip(rows.mask) {
            *to = i8::from(*may);
        }
        Ok(())
    }
}

/// Ids of the environments of routing, each with a line.
#[pyfunction]
pub(crate) fn routing_names() -> Vec<(&'static str, &'static str)> {
    with_lines(routing_ids())
}

/// The keys of their settings.
#[pyfunction]
pub(crate) fn routing_setting_names() -> Vec<String> {
    routing_settings()
}

/// Ids of the environments of autoscaling, each with a line.
#[pyfunction]
pub(crate) fn autoscaling_names() -> Vec<(&'static str, &'static str)> {
    with_lines(scaling_ids())
}

/// The keys of their settings.
#[pyfunction]
pub(crate) fn autoscaling_setting_names() -> Vec<String> {
    scaling_settings()
}

fn with_lines(ids: impl Iterator<Item = &'static str>) -> Vec<(&'static str, &'static str)> {
    ids.map(|id| (id, describe_serving(id).unwrap_or_default()))
        .collect()
}
