//! Our errors as the exceptions that fit them, in our words. A panic becomes an exception too.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pleach_env::Error as EnvError;
use pleach_experiments::Error;
use pleach_scheduler::Problem;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// An error of an environment.
pub(crate) fn of_env(error: EnvError) -> PyErr {
    match error {
        EnvError::Problem(problem) => of_problem(&problem),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// What was asked for cannot be, or a file is not given.
pub(crate) fn of_problem(problem: &Problem) -> PyErr {
    match problem.system() {
        Some(source) => os_error(&problem.to_string(), source),
        None => PyValueError::new_err(problem.to_string()),
    }
}

/// An error of a comparison, a distillation or a policy file.
pub(crate) fn of_experiment(error: impl Into<Error>) -> PyErr {
    match error.into() {
        Error::Problem(problem) => of_problem(&problem),
        failed @ Error::Failed(_) => PyRuntimeError::new_err(failed.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// With the number of the system's error Python picks the class: `FileNotFoundError`, `PermissionError`.
fn os_error(text: &str, source: &std::io::Error) -> PyErr {
    let text = text.to_owned();
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text)),
        None => PyOSError::new_err(text),
    }
}

/// A value that is refused.
pub(crate) fn refused(key: &str, value: impl ToString, allowed: impl ToString, hint: &str) -> PyErr {
    let error = Problem::new(key, value, allowed, hint);
    PyValueError::new_err(error.to_string())
}

/// Does the work; a panic in it is a fault of ours and becomes a `RuntimeError`.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| of_panic(panic.as_ref()))
}

/// The exception of a panic.
pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    PyRuntimeError::new_err(format!("a fault of Pleach itself, please report it: {text}"))
}
