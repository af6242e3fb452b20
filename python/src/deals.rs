//! One environment in which GPUs are dealt: scores of all rows in, the next deal out.

use numpy::{PyArray1, PyReadonlyArray1};
use pleach_experiments::worlds::deals::{Deals, deal_environment, deal_environments, deal_settings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{guarded, of_experiment};
use crate::figures::{self, FeatureRow};

/// Rows `[max_rows, F]`, flat, and their mask `[max_rows]`.
type Shown<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<i8>>);

/// Jobs whose GPUs are dealt by scores.
#[pyclass(module = "pleach._pleach")]
pub(crate) struct DealsOfJobs {
    env: Deals,
}

#[pymethods]
impl DealsOfJobs {
    #[new]
    fn new(py: Python<'_>, id: &str, changes: &str) -> PyResult<DealsOfJobs> {
        let env = py.detach(|| guarded(|| deal_environment(id, changes)))?;
        let env = env.map_err(of_experiment)?;
        Ok(DealsOfJobs { env })
    }

    /// Features of a row.
    fn features(&self) -> Vec<FeatureRow> {
        let [_, of_row] = figures::features(self.env.rows().schema, &self.env.view());
        of_row
    }

    /// Begins an episode.
    fn reset(&mut self, py: Python<'_>, seed: u64) -> PyResult<()> {
        let env = &mut self.env;
        let done = py.detach(|| guarded(|| env.reset(seed)))?;
        done.map_err(of_experiment)
    }

    /// Copies of what is shown.
    fn rows<'py>(&self, py: Python<'py>) -> Shown<'py> {
        let rows = self.env.rows();
        let mask = rows.mask.iter().map(|may| i8::from(*may)).collect();
        (PyArray1::from_slice(py, rows.rows), PyArray1::from_vec(py, mask))
    }

    /// Deals by scores: reward, whether it was the last, seconds until the next.
    fn step(&mut self, py: Python<'_>, scores: PyReadonlyArray1<'_, f64>) -> PyResult<(f64, bool, f64)> {
        let (env, scores) = (&mut self.env, scores.as_slice()?);
        let step = py.detach(|| guarded(|| env.step(scores)))?;
        let step = step.map_err(of_experiment)?;
        Ok((step.reward, step.is_last, step.dt_s))
    }

    /// Scores of the dealer that is the expert.
    fn expert_scores<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let scores = guarded(|| self.env.expert_scores())?.map_err(of_experiment)?;
        Ok(PyArray1::from_vec(py, scores))
    }

    /// Figures of the episode that has just ended, once.
    fn episode<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(found) = self.env.take_figures() else {
            return Ok(None);
        };
        let figures = PyDict::new(py);
        for (name, value) in found {
            figures.set_item(name, value)?;
        }
        Ok(Some(figures))
    }
}

/// Ids of the environments, each with a line.
#[pyfunction]
pub(crate) fn deal_names() -> Vec<(&'static str, &'static str)> {
    deal_environments().collect()
}

/// The keys of their settings.
#[pyfunction]
pub(crate) fn deal_setting_names() -> Vec<String> {
    deal_settings()
}
