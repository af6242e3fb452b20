//! What Python sees of Pleach. Classes and functions for people stand on top of this, in `python/pleach`.
//!
//! # What is deliberately not here
//! Models: everything is called where the command line calls it. Unsafe code: arrays belong to NumPy, and Rust borrows them.

mod actions;
mod buffers;
mod callable;
mod candidates;
mod compare;
mod deals;
mod envs;
mod errors;
mod explain;
mod figures;
mod interrupt;
mod lockstep;
mod networks;
mod picture;
mod policy;
mod segments;
mod serving;
mod settings;
mod train;
mod when;
mod workload;

use std::ffi::OsString;

use pleach_env::EnvConfig;
use pleach_env::workload::generate::GeneratorConfig;
use pyo3::prelude::*;

/// All registered ids.
#[pyfunction]
fn env_ids() -> Vec<&'static str> {
    EnvConfig::ids().collect()
}

/// Names of kinds of candidates, in the order of their numbers.
#[pyfunction]
fn candidate_kinds() -> Vec<&'static str> {
    candidates::kinds()
}

/// Names of generators.
#[pyfunction]
fn workload_names() -> Vec<&'static str> {
    GeneratorConfig::names().collect()
}

/// Runs the command line `pleach`; its exit code.
#[pyfunction]
fn command_line(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| pleach_cli::run(words))
}

/// Fails as a fault of ours would, for the test that no panic reaches a user as one.
#[pyfunction]
fn fault(text: &str) -> PyResult<()> {
    errors::guarded(|| panic!("{text}"))
}

#[pymodule]
fn _pleach(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // As the program does: the laboratory's planners and commands by name.
    pleach_cli::register(pleach_cli::Plugins::new()).map_err(errors::of_experiment)?;
    module.add_class::<envs::Envs>()?;
    module.add_class::<serving::Serving>()?;
    module.add_class::<deals::DealsOfJobs>()?;
    module.add_class::<policy::Policy>()?;
    module.add_class::<workload::Workload>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(env_ids, module)?)?;
    module.add_function(wrap_pyfunction!(candidate_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(settings::setting_names, module)?)?;
    module.add_function(wrap_pyfunction!(serving::serving_names, module)?)?;
    module.add_function(wrap_pyfunction!(serving::serving_setting_names, module)?)?;
    module.add_function(wrap_pyfunction!(deals::deal_names, module)?)?;
    module.add_function(wrap_pyfunction!(deals::deal_setting_names, module)?)?;
    module.add_function(wrap_pyfunction!(workload_names, module)?)?;
    module.add_function(wrap_pyfunction!(policy::policy_names, module)?)?;
    module.add_function(wrap_pyfunction!(policy::columns_of, module)?)?;
    module.add_function(wrap_pyfunction!(workload::cluster, module)?)?;
    module.add_function(wrap_pyfunction!(networks::contract, module)?)?;
    module.add_function(wrap_pyfunction!(command_line, module)?)?;
    module.add_function(wrap_pyfunction!(fault, module)?)?;
    module.add_function(wrap_pyfunction!(workload::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(compare::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(compare::distill, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(when::when, module)?)
}
