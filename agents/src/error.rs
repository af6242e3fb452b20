//! What can go wrong while learning. Operating errors only; a broken invariant of ours is an assertion.

use std::path::Path;

use pleach_scheduler::Problem;
use thiserror::Error as ThisError;

pub(crate) use pleach_network::{SEE, SETTING_MAX};

/// An error of the learner.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A setting, a checkpoint or two sides that do not fit, a file that cannot be read or written.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A device that gradients cannot be taken on.
    #[error("device {device}: {reason}")]
    Device {
        /// Its name, as in `--device`.
        device: &'static str,
        /// Why not, on one line.
        reason: String,
    },
    /// The environment failed.
    #[error(transparent)]
    Env(#[from] pleach_env::Error),
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

impl Error {
    pub(crate) fn config(key: &str, value: impl ToString, allowed: &str) -> Error {
        pleach_network::refused(key, value, allowed).into()
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Problem::io("access", path, source).into()
    }

    pub(crate) fn contract(what: &'static str, expected: impl ToString, found: impl ToString) -> Error {
        pleach_network::unfit(what, expected, found).into()
    }
}
