//! What can go wrong with a network. Operating errors only; a broken invariant of ours is an assertion.

use std::path::{Path, PathBuf};

use pleach_scheduler::ConfigError;
use thiserror::Error as ThisError;

/// Largest value of a rate, weight or time that has no bound of its own. *Ours*: with larger ones nothing stays finite.
pub const SETTING_MAX: f64 = 1e12;

/// An error of the network.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A configuration value that cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file that cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Two sides that must agree and do not: feature schemas, sizes of observations, lengths of lists.
    #[error("{what}: expected {expected}, found {found}")]
    Contract {
        /// What must agree.
        what: &'static str,
        /// This side.
        expected: String,
        /// The other side.
        found: String,
    },
    /// A network of operators that cannot be run.
    #[error("the network's operators: {reason}")]
    Graph {
        /// Which operator, and what is wrong with it.
        reason: String,
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

impl Error {
    /// A setting that cannot be used: its key, the value found, what is allowed.
    pub fn config(key: &str, value: impl ToString, allowed: &str) -> Error {
        Error::Config(ConfigError::new(key, value, allowed, "See docs/learning.md."))
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io {
            path: path.to_path_buf(),
            source,
        }
    }

    pub(crate) fn file(path: &Path, reason: impl ToString) -> Error {
        Error::File {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn contract(what: &'static str, expected: impl ToString, found: impl ToString) -> Error {
        Error::Contract {
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}
