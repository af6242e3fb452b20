//! What can go wrong while a tree is distilled.

use pleach_scheduler::tree::TreeError;
use pleach_scheduler::{PolicyError, Problem};
use thiserror::Error as ThisError;

/// An error of this crate, or one that the caller's own episodes and simulations gave (`E`).
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error<E> {
    /// A setting that cannot be used.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A policy that could not decide.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A tree that cannot be used.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The episodes had no decision point with more than one candidate.
    #[error("nothing was recorded in {episodes} episodes: no decision point had more than one candidate")]
    NothingRecorded {
        /// Episodes that were run.
        episodes: usize,
    },
    /// A simulation judged a tree with a number that is not finite.
    #[error("a tree with {leaves} leaves was judged {ratio}; a judgement is a finite number")]
    Judgement {
        /// Leaves of the tree.
        leaves: usize,
        /// The judgement.
        ratio: f64,
    },
    /// An episode or a simulation of the caller failed.
    #[error("{0}")]
    Caller(E),
}
