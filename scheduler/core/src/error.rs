//! What can go wrong when a scheduler is asked to decide. Operating errors only; a broken invariant of ours is an assertion.

use thiserror::Error;

/// A policy that cannot decide. Small, because it travels on the step path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A score was NaN or infinite.
    #[error("the policy gave a score that is not finite for candidate {candidate}")]
    NotFinite {
        /// Index of the candidate.
        candidate: usize,
    },
    /// The observation has another shape than the policy was made for.
    #[error("the policy expects {expected} features and was given {found}")]
    Shape {
        /// Features that the policy was made for.
        expected: usize,
        /// Features in the observation.
        found: usize,
    },
    /// The policy shares out single GPUs by itself, and some gang here is cut into tasks.
    #[error(
        "the policy shares out single GPUs and would cut tasks in two: take another one, or jobs without gpus_per_task"
    )]
    Tasks,
    /// A policy of the caller's own failed; the caller knows why.
    #[error("a policy of the caller's own failed")]
    Foreign,
    /// The user or the caller asked the work to end.
    #[error("the work was asked to end")]
    Stopped,
}

impl PolicyError {
    /// Checks that every score is finite.
    ///
    /// # Errors
    /// [`PolicyError::NotFinite`] with the first candidate whose score is not.
    pub fn check_finite(scores: &[f32]) -> Result<(), PolicyError> {
        match scores.iter().position(|score| !score.is_finite()) {
            Some(candidate) => Err(PolicyError::NotFinite { candidate }),
            None => Ok(()),
        }
    }
}
