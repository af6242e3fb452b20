//! One environment of work that serves, whose observations are arrays of NumPy, as those of jobs.

use numpy::PyArray1;
use pleach_experiments::worlds::{
    describe_environment, environment_settings, serving_environment, serving_ids,
};
use pleach_serving::Environment;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::buffers::{Buffers, lend};
use crate::errors::{guarded, of_experiment};
use crate::figures::{self, FeatureRow};

/// Requests that are decided one choice at a time.
#[pyclass(module = "pleach._pleach")]
pub(crate) struct Serving {
    env: Box<dyn Environment>,
    buffers: Buffers,
}

#[pymethods]
impl Serving {
    #[new]
    fn new(py: Python<'_>, id: &str, changes: &str) -> PyResult<Serving> {
        let env = py.detach(|| guarded(|| serving_environment(id, changes)))?;
        let env = env.map_err(of_experiment)?;
        let rows = env.rows();
        let buffers = Buffers {
            global: PyArray1::zeros(py, rows.context.len(), false).unbind(),
            candidates: PyArray1::zeros(py, rows.rows.len(), false).unbind(),
            mask: PyArray1::from_vec(py, vec![1; rows.mask.len()]).unbind(),
        };
        Ok(Serving { env, buffers })
    }

    /// G, C, F.
    fn sizes(&self) -> (usize, usize, usize) {
        let view = self.env.view();
        (view.num_context, self.env.rows().mask.len(), view.num_row)
    }

    /// The arrays by name, flat and writeable: not for users.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.buffers.by_name(py)
    }

    /// Features of the context, then those of a row.
    fn features(&self) -> [Vec<FeatureRow>; 2] {
        figures::features(self.env.rows().schema, &self.env.view())
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
        Ok((step.reward, step.is_last, step.dt_s))
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

impl Serving {
    /// Writes the rows into the arrays.
    fn show(&mut self, py: Python<'_>) -> PyResult<()> {
        let rows = self.env.rows();
        copy(py, &self.buffers.global, rows.context, |value| *value)?;
        copy(py, &self.buffers.candidates, rows.rows, |value| *value)?;
        copy(py, &self.buffers.mask, rows.mask, |may| (*may).into())
    }
}

fn copy<From, To: numpy::Element + Copy>(
    py: Python<'_>,
    array: &Py<PyArray1<To>>,
    values: &[From],
    to: impl Fn(&From) -> To,
) -> PyResult<()> {
    let mut lent = lend(py, array)?;
    let slice = lent.as_slice_mut();
    let slice = slice.map_err(|error| PyValueError::new_err(error.to_string()))?;
    for (place, value) in slice.iter_mut().zip(values) {
        *place = to(value);
    }
    Ok(())
}

/// Ids of the environments of work that serves, each with a line.
#[pyfunction]
pub(crate) fn serving_names() -> Vec<(&'static str, &'static str)> {
    serving_ids()
        .map(|id| (id, describe_environment(id).unwrap_or_default()))
        .collect()
}

/// The keys of an environment's settings.
#[pyfunction]
pub(crate) fn serving_setting_names(id: &str) -> PyResult<Vec<String>> {
    environment_settings(id).map_err(of_experiment)
}
