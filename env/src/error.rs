//! What can go wrong in this crate. Operating errors only; a broken invariant of ours is an assertion.

use pleach_scheduler::{PolicyError, Problem};
use thiserror::Error as ThisError;

/// An error of the environment.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A setting or a list of jobs that cannot be used, read or written.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A policy that could not decide.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An action that the environment cannot take.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// An action that cannot be taken. Small and `Copy`, because it travels on the step path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum StepError {
    /// The action is masked or out of range.
    #[error("action {action} is not admissible: there are {num_candidates} candidates (see the mask)")]
    Inadmissible {
        /// The action.
        action: usize,
        /// Admissible actions are below this number.
        num_candidates: usize,
    },
    /// The episode is over.
    #[error("the episode is over: call reset")]
    Ended,
    /// A batch or a list has the wrong length.
    #[error("a buffer holds {found} values and must hold {expected}")]
    Shape {
        /// Values that it must hold.
        expected: usize,
        /// Values that it holds.
        found: usize,
    },
}
