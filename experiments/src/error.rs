//! What can go wrong in an experiment, in four families, and the exit code that each one means.
//!
//! The exit codes are a contract with whoever restarts us (a job array, a batch queue, a shell loop): 0 is done, 75 asks
//! for another try, 2 is an input that no retry will mend, 1 is everything else.

use std::io;
use std::path::{Path, PathBuf};

use pleach_agents::Error as AgentError;
use pleach_env::Error as EnvError;
use pleach_env::workload::Error as WorkloadError;
use pleach_policies::Refusal;
use pleach_scheduler::{ConfigError, PolicyError};
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
    /// A value of the command line or of a configuration file.
    #[error(transparent)]
    Config(Box<ConfigError>),
    /// A place in a file that cannot be read as what it should be.
    #[error("data: {}: {message}", place(.file, *.line, .column))]
    Data {
        /// The file.
        file: PathBuf,
        /// Line, from 1; 0 where the file as a whole is meant.
        line: usize,
        /// Column by its name, or by its number from 1; empty where the line as a whole is meant.
        column: String,
        /// What is wrong.
        message: String,
    },
    /// Two artefacts that do not fit together.
    #[error("contract: {what}: expected {expected}, found {found}. {hint}")]
    Contract {
        /// What does not fit.
        what: String,
        /// Our side.
        expected: String,
        /// The other side.
        found: String,
        /// How to mend it.
        hint: String,
    },
    /// The file system refused.
    #[error("{action} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried: `write`, `read`, ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A training of which no network may be kept: none held to its bounds.
    #[error("{0}")]
    NothingKept(String),
    /// Something else failed while it ran.
    #[error("{0}")]
    Failed(String),
    /// Somebody asked the program to end, and it did, with its state kept.
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

/// A place in a file as far as it is known: `trace.csv, line 17, column num_gpus`.
fn place(file: &Path, line: usize, column: &str) -> String {
    let mut place = file.display().to_string();
    if line > 0 {
        place += &format!(", line {line}");
    }
    if !column.is_empty() {
        place += &format!(", column {column}");
    }
    place
}

impl From<PolicyError> for Error {
    fn from(error: PolicyError) -> Error {
        Error::Failed(error.to_string())
    }
}

impl From<EnvError> for Error {
    fn from(error: EnvError) -> Error {
        match error {
            EnvError::Config(config) => Error::Config(Box::new(config)),
            EnvError::Workload(error) => error.into(),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<WorkloadError> for Error {
    fn from(error: WorkloadError) -> Error {
        match error {
            WorkloadError::Config(config) => Error::Config(Box::new(config)),
            WorkloadError::Data {
                file,
                line,
                column,
                message,
            } => Error::Data {
                file: file.into(),
                line: usize::try_from(line).unwrap_or(usize::MAX),
                column: if column == "-" { String::new() } else { column },
                message,
            },
            WorkloadError::Io { path, source } => Error::data(&path, source.to_string()),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl From<pleach_tables::Error> for Error {
    fn from(error: pleach_tables::Error) -> Error {
        WorkloadError::from(error).into()
    }
}

impl From<pleach_verify::Error> for Error {
    fn from(error: pleach_verify::Error) -> Error {
        match error {
            pleach_verify::Error::Table(error) => error.into(),
            other => Error::Data {
                file: PathBuf::from("record"),
                line: 0,
                column: String::new(),
                message: other.to_string(),
            },
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal {
            Refusal::Config(config) => Error::Config(config),
            Refusal::Data { file, message } => Error::data(&file, message),
            Refusal::Contract {
                what,
                expected,
                found,
                hint,
            } => Error::Contract {
                what,
                expected,
                found,
                hint,
            },
            Refusal::Io { path, source } => Error::io("read", &path, source),
        }
    }
}

impl From<pleach_network::Error> for Error {
    fn from(error: pleach_network::Error) -> Error {
        AgentError::from(error).into()
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
            AgentError::Config(error) => Error::Config(Box::new(error)),
            AgentError::Contract {
                what,
                expected,
                found,
            } => Error::Contract {
                what: what.to_string(),
                expected,
                found,
                hint: "See docs/learning.md.".to_string(),
            },
            AgentError::Env(error) => error.into(),
            AgentError::Io { path, source } => Error::io("access", &path, source),
            other => Error::Failed(other.to_string()),
        }
    }
}

impl Error {
    /// A configuration error: the key, the value found, what is allowed, and how to mend it.
    pub fn config(
        key: impl Into<String>,
        value: impl ToString,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) -> Error {
        Error::Config(Box::new(ConfigError::new(key, value, allowed, hint)))
    }

    /// An error of the file system.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io {
            action,
            path: path.to_path_buf(),
            source,
        }
    }

    /// A file that is not what it should be, as a whole.
    pub fn data(file: &Path, message: impl Into<String>) -> Error {
        Error::Data {
            file: file.to_path_buf(),
            line: 0,
            column: String::new(),
            message: message.into(),
        }
    }

    /// A JSON file that does not parse, with the place.
    pub fn json(file: &Path, source: &serde_json::Error) -> Error {
        Error::Data {
            file: file.to_path_buf(),
            line: source.line(),
            column: source.column().to_string(),
            message: source.to_string(),
        }
    }

    /// The exit code that this error means.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Config(_) | Error::Data { .. } | Error::Contract { .. } => EXIT_CONFIG,
            // An input that is not there, or is a folder, is a wrong argument; a disk that is full is not.
            Error::Io {
                action: "read",
                source,
                ..
            } if matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
            ) =>
            {
                EXIT_CONFIG
            }
            Error::Temporary(_) => EXIT_AGAIN,
            Error::Stopped { signal, .. } => exit_code_of_signal(*signal),
            Error::Io { .. } | Error::NothingKept(_) | Error::Failed(_) => EXIT_FAILED,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Error {
        Error::Config(Box::new(error))
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
    fn a_data_error_names_the_place_as_far_as_it_is_known() {
        let at = |line, column: &str| Error::Data {
            file: "trace.csv".into(),
            line,
            column: column.into(),
            message: "bad".into(),
        };
        assert_eq!(
            at(17, "num_gpus").to_string(),
            "data: trace.csv, line 17, column num_gpus: bad"
        );
        assert_eq!(at(17, "").to_string(), "data: trace.csv, line 17: bad");
        assert_eq!(at(0, "").to_string(), "data: trace.csv: bad");
        assert_eq!(at(0, "").exit_code(), EXIT_CONFIG);
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
