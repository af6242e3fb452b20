//! What can go wrong while learning. Operating errors only; a broken invariant of ours is an assertion.

use std::path::{Path, PathBuf};

use pleach_scheduler::ConfigError;
use thiserror::Error as ThisError;

pub(crate) use pleach_network::SETTING_MAX;

/// An error of the learner.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A configuration value that cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A checkpoint that cannot be used.
    #[error("{path}: {reason}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A device that gradients cannot be taken on.
    #[error("device {device}: {reason}")]
    Device {
        /// Its name, as in `--device`.
        device: &'static str,
        /// Why not, on one line.
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
    /// The environment failed.
    #[error(transparent)]
    Env(#[from] pleach_env::Error),
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Anything else of the network.
    #[error(transparent)]
    Network(pleach_network::Error),
    /// What a learner plays in failed, in the caller's own words.
    #[error(transparent)]
    Play(Box<dyn std::error::Error + Send + Sync>),
    /// A loss or a gradient that is not a number: the parameters are those before the update.
    #[error(
        "update {update}: the loss is not finite; the parameters before the update are kept. The same settings would fail \
         at the same update again: try a lower learning_rate or max_grad_norm"
    )]
    NotFinite {
        /// The update that was given up, counted from 0.
        update: u64,
    },
}

impl From<pleach_network::Error> for Error {
    fn from(error: pleach_network::Error) -> Error {
        use pleach_network::Error as Of;
        match error {
            Of::Config(error) => Error::Config(error),
            Of::File { path, reason } => Error::Checkpoint { path, reason },
            Of::Contract {
                what,
                expected,
                found,
            } => Error::Contract {
                what,
                expected,
                found,
            },
            Of::Io { path, source } => Error::Io { path, source },
            other => Error::Network(other),
        }
    }
}

impl Error {
    pub(crate) fn config(key: &str, value: impl ToString, allowed: &str) -> Error {
        pleach_network::Error::config(key, value, allowed).into()
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io {
            path: path.to_path_buf(),
            source,
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
