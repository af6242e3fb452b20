//! What can go wrong in an experiment, and the exit code that each one means.
//!
//! The exit codes are a contract with what restarts the program (a job array, a batch queue, a shell loop): 0 is done, 75 asks
//! for another try, 2 is an input that no retry will mend, 1 is everything else.

use std::io;
use std::path::Path;

use pleach_agents::Error as AgentError;
use pleach_env::Error as EnvError;
use pleach_scheduler::{PolicyError, Problem};
use thiserror::Error;

/// Exit code of a run that did what it was asked.
pub const EXIT_DONE: u8 = 0;
/// Exit code of a run that failed for a reason of its own.
pub const EXIT_FAILED: u8 = 1;
/// Exit code of a run whose input cannot be used. The same as that of a command line that cannot be parsed; never worth a retry.
pub const EXIT_CONFIG: u8 = 2;
/// Exit code of a run that may succeed if it is tried again.
///
/// # Source
/// `EX_TEMPFAIL` of `sysexits.h`; `RequeueExit=75` makes Slurm requeue the task.
pub const EXIT_AGAIN: u8 = 75;

/// Exit code of a run that a signal ended: 130 for SIGINT, 143 for SIGTERM.
///
/// # Source
/// What shells give for a command that a signal ended: 128 and its number (POSIX, *Shell Command Language*, 2.8.2).
#[must_use]
pub fn exit_code_of_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(EXIT_FAILED, |signal| signal.saturating_add(128))
}

/// `SIGTERM` for 15; the number for what has no name here.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    match signal {
        2 => "SIGINT".into(),
        15 => "SIGTERM".into(),
        other => format!("signal {other}"),
    }
}

/// An experiment that cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be: a value of the command line or of a file, two artefacts that do not fit together, a file that
    /// the system does not give.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A training of which no network may be kept: none held to its bounds.
    #[error("{0}")]
    NothingKept(String),
    /// Something else failed while it ran.
    #[error("{0}")]
    Failed(String),
    /// The program was asked to end, and it did, with its state kept.
    #[error("{message}")]
    Stopped {
        /// Number of the signal.
        signal: i32,
        /// What is kept, and how to go on.
        message: String,
    },
    /// Something failed that may work if tried again.
    #[error("{0} (worth another try)")]
    Temporary(String),
}

impl From<PolicyError> for Error {
    fn from(error: PolicyError) -> Error {
        Error::Failed(error.to_string())
    }
}

impl From<EnvError> for Error {
    fn from(error: EnvError) -> Error {
        match error {
            EnvError::Problem(problem) => problem.into(),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<Error> for AgentError {
    fn from(error: Error) -> AgentError {
        AgentError::Play(Box::new(error))
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Error {
        match error {
            // What an update played in is ours.
            AgentError::Play(error) => error
                .downcast()
                .map_or_else(|other| Error::Failed(other.to_string()), |own| *own),
            AgentError::Problem(problem) => problem.into(),
            AgentError::Env(error) => error.into(),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl Error {
    /// A setting that cannot be used: the key, the value found, what is allowed, and how to mend it.
    pub fn config(
        key: impl Into<String>,
        value: impl ToString,
        allowed: impl ToString,
        hint: impl ToString,
    ) -> Error {
        Problem::new(key, value, allowed, hint).into()
    }

    /// Refuses a setting where it is wrong, as [`Problem::refuse_if`].
    ///
    /// # Errors
    /// It is wrong.
    pub fn refuse_if(
        is_wrong: bool,
        key: impl ToString,
        value: impl ToString,
        allowed: impl ToString,
        hint: impl ToString,
    ) -> Result<(), Error> {
        Ok(Problem::refuse_if(is_wrong, key, value, allowed, hint)?)
    }

    /// An error of the file system.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Problem::io(action, path, source).into()
    }

    /// A file that is not what it should be, as a whole.
    pub fn data(file: &Path, message: impl ToString) -> Error {
        Problem::data(file, message).into()
    }

    /// What the system said, where it refused a file.
    #[must_use]
    pub fn system(&self) -> Option<&io::Error> {
        match self {
            Error::Problem(problem) => problem.system(),
            _ => None,
        }
    }

    /// The exit code that this error means.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Problem(problem) if problem.is_of_input() => EXIT_CONFIG,
            Error::Temporary(_) => EXIT_AGAIN,
            Error::Stopped { signal, .. } => exit_code_of_signal(*signal),
            Error::Problem(_) | Error::NothingKept(_) | Error::Failed(_) => EXIT_FAILED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_error_names_key_value_allowed_set_and_hint_and_exits_with_2() {
        let error = Error::config("load", -1.0, "0 < load <= 10", "Give --load 0.8.");
        assert_eq!(
            error.to_string(),
            "config: load = -1: allowed is 0 < load <= 10. Give --load 0.8."
        );
        assert_eq!(error.exit_code(), EXIT_CONFIG);
    }

    #[test]
    fn a_folder_where_a_file_is_read_is_a_wrong_argument() {
        let folder = tempfile::tempdir().unwrap();
        let error = crate::run_folder::atomic_file::read_text(folder.path(), 100).unwrap_err();
        assert_eq!(error.exit_code(), EXIT_CONFIG, "{error}");
    }

    #[test]
    fn only_a_temporary_error_asks_for_another_try() {
        assert_eq!(Error::Temporary("node lost".into()).exit_code(), EXIT_AGAIN);
        assert_eq!(Error::Failed("no".into()).exit_code(), EXIT_FAILED);
        let io = Error::io("write", Path::new("x"), io::Error::other("disk full"));
        assert_eq!(
            (io.exit_code(), io.to_string()),
            (EXIT_FAILED, "write x: disk full".to_string())
        );
    }
}
