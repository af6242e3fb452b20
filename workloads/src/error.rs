//! What can go wrong in this crate. Operating errors only; a broken invariant of ours is an assertion.

use std::path::PathBuf;

use pleach_scheduler::ConfigError;
use thiserror::Error as ThisError;

/// An error of a list of jobs.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A configuration value that cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file whose content cannot be used.
    #[error("{file}: line {line}, column {column}: {message}")]
    Data {
        /// The file.
        file: String,
        /// 1-based line; 0 where the file as a whole is meant.
        line: u64,
        /// Column name, or `-`.
        column: String,
        /// What is wrong, what would be accepted and how to mend it.
        message: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl From<pleach_tables::Error> for Error {
    fn from(error: pleach_tables::Error) -> Error {
        use pleach_tables::Error as Of;
        match error {
            Of::Data {
                file,
                line,
                column,
                message,
            } => Error::Data {
                file,
                line,
                column,
                message,
            },
            Of::Io { path, source } => Error::Io { path, source },
            Of::NoParquet { path } => Error::Config(ConfigError::new(
                "path",
                path.display(),
                "CSV: this build reads and writes no Parquet",
                "build with the feature `parquet` or convert the file to CSV",
            )),
            // The list of that crate may grow; what it says is said.
            other => Error::Io {
                path: PathBuf::new(),
                source: std::io::Error::other(other.to_string()),
            },
        }
    }
}
