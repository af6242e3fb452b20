//! Arrays of NumPy that Rust borrows.

use numpy::{Element, PyArray1, PyArrayMethods, PyReadwriteArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The arrays, flat; Python gives them their shapes.
pub(crate) struct Buffers {
    pub(crate) global: Py<PyArray1<f32>>,
    pub(crate) candidates: Py<PyArray1<f32>>,
    pub(crate) mask: Py<PyArray1<i8>>,
}

impl Buffers {
    /// The arrays by name.
    pub(crate) fn by_name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = PyDict::new(py);
        arrays.set_item("global", &self.global)?;
        arrays.set_item("candidates", &self.candidates)?;
        arrays.set_item("mask", &self.mask)?;
        Ok(arrays)
    }

    /// Arrays of their own that hold the same.
    pub(crate) fn copied(&self, py: Python<'_>) -> PyResult<Buffers> {
        Ok(Buffers {
            global: copied(py, &self.global)?,
            candidates: copied(py, &self.candidates)?,
            mask: copied(py, &self.mask)?,
        })
    }
}

fn copied<T: Element + Copy>(py: Python<'_>, array: &Py<PyArray1<T>>) -> PyResult<Py<PyArray1<T>>> {
    let lent = lend(py, array)?;
    Ok(PyArray1::from_slice(py, lent.as_slice()?).unbind())
}

/// An array for the time of a call.
///
/// # Errors
/// The array is borrowed elsewhere at this moment.
pub(crate) fn lend<'py, T: Element>(
    py: Python<'py>,
    array: &Py<PyArray1<T>>,
) -> PyResult<PyReadwriteArray1<'py, T>> {
    let lent = array.bind(py).try_readwrite();
    lent.map_err(|error| PyRuntimeError::new_err(format!("a buffer of the environments is in use: {error}")))
}
