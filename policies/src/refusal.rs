//! Why a policy is not opened. Programs wrap it and change no word of it.

use std::io;
use std::path::{Path, PathBuf};

use pleach_dealing::RoundDealer;
use pleach_scheduler::ConfigError;
use thiserror::Error;

/// A policy that is not opened, or not for this cluster.
#[derive(Debug, Error)]
pub enum Refusal {
    /// A name that is none, a folder without policies, a policy that asks for more than the cluster can do.
    #[error(transparent)]
    Config(Box<ConfigError>),
    /// A file that is not what it should be.
    #[error("data: {}: {message}", file.display())]
    Data {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A file of another kind or version, or another one than its folder lists.
    #[error("contract: {what}: expected {expected}, found {found}. {hint}")]
    Contract {
        /// What does not fit.
        what: String,
        /// Our side.
        expected: String,
        /// The file's side.
        found: String,
        /// How to mend it.
        hint: String,
    },
    /// A file that cannot be read.
    #[error("read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Refusal {
    /// A key of what was asked for, the value found, what is allowed, and how to mend it.
    pub(crate) fn config(
        key: impl Into<String>,
        value: impl ToString,
        allowed: impl Into<String>,
        hint: impl Into<String>,
    ) -> Refusal {
        Refusal::Config(Box::new(ConfigError::new(key, value, allowed, hint)))
    }

    /// A policy that chooses what no daemon carries out: `resize a running job`.
    pub(crate) fn not_in_daemons(name: &str, phrase: &str) -> Refusal {
        let allowed = "on a cluster a policy that chooses what its daemon carries out";
        let hint =
            format!("It needs {phrase}, which no daemon carries out: the simulator does (pleach evaluate).");
        Refusal::config("policy", name, allowed, hint)
    }

    /// A planner that no daemon can drive a cluster with.
    pub(crate) fn alone(name: &str) -> Refusal {
        let allowed = format!(
            "on a cluster a heuristic, a dealer ({}), a formula, a tree or a network",
            RoundDealer::NAMES.join(", ")
        );
        let hint = "It plans in the simulator alone (pleach evaluate).";
        Refusal::config("policy", name, allowed, hint)
    }

    /// A planner of the laboratory in a program without it.
    pub(crate) fn without_laboratory(name: &str) -> Refusal {
        let allowed = "a policy of this program, which was built without the laboratory";
        let hint = "Its planners come with the feature `lab`, which is on by default: cargo build --release -p pleach-cli.";
        Refusal::config("policy", name, allowed, hint)
    }

    /// A file that is not what it should be.
    pub(crate) fn data(file: &Path, message: impl Into<String>) -> Refusal {
        Refusal::Data {
            file: file.to_path_buf(),
            message: message.into(),
        }
    }

    /// A file that cannot be read.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Refusal {
        let path = path.to_path_buf();
        move |source| Refusal::Io { path, source }
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Refusal {
        Refusal::Config(Box::new(error))
    }
}
