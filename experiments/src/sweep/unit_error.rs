//! Why a unit has no result, and what a batch system learns of it.

use thiserror::Error as ThisError;

use crate::error::{EXIT_AGAIN, EXIT_CONFIG, EXIT_FAILED, Error};

/// Why a unit has no result.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum UnitError {
    /// Its configuration cannot be used; trying again is no help.
    #[error("{0}")]
    Config(String),
    /// It may succeed if tried again.
    #[error("{0}")]
    Temporary(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

impl UnitError {
    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            UnitError::Config(_) => EXIT_CONFIG,
            UnitError::Temporary(_) => EXIT_AGAIN,
            UnitError::Failed(_) => EXIT_FAILED,
        }
    }
}

impl From<Error> for UnitError {
    fn from(error: Error) -> UnitError {
        match error.exit_code() {
            EXIT_CONFIG => UnitError::Config(error.to_string()),
            EXIT_AGAIN => UnitError::Temporary(error.to_string()),
            _ => UnitError::Failed(error.to_string()),
        }
    }
}
