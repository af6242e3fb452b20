//! What the file of a network made in Python says of itself.

use pleach_network::Contract;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::of_env;
use crate::settings::settings;

/// The contract of a network that chooses in an environment of these settings (JSON): the view that it sees and the candidates that it
/// chooses among. As a remark in an ONNX file it makes the file's policy meet both everywhere.
#[pyfunction]
pub(crate) fn contract(id: &str, changes: &str) -> PyResult<String> {
    let env = settings(id, changes).map_err(of_env)?;
    let contract = Contract::current(env.spaces(), env.candidates, format!("{id}, from Python"));
    serde_json::to_string(&contract).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
