//! How much work a programme may be, what it answers, and why it may have no answer.

use thiserror::Error as ThisError;

/// A column of a [`LinearProgram`](super::linear_program::LinearProgram): one number to be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column(pub(super) usize);

impl Column {
    /// Its place in the order in which columns were added, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// How much work a programme may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most terms in all rows together; a larger programme is refused.
    pub terms_max: usize,
    /// Most nodes of the search over whole numbers after the first.
    pub nodes_max: u64,
    /// How far the objective may fall short of the best that is possible, as a part of it. Only for whole numbers.
    pub gap: f64,
}

impl Default for Limits {
    /// Half a million terms, 10,000 nodes, no gap. *Assumed*: a programme of the first size takes minutes.
    fn default() -> Limits {
        Limits {
            terms_max: 500_000,
            nodes_max: 10_000,
            gap: 0.0,
        }
    }
}

/// Why a programme has no answer.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Unsolved {
    /// No choice meets all rows.
    #[error("no choice meets all rows")]
    Infeasible,
    /// The objective can grow without end.
    #[error("the objective has no limit")]
    Unbounded,
    /// More terms than allowed.
    #[error("{terms} terms, at most {terms_max} are solved")]
    TooLarge {
        /// Terms of the programme.
        terms: usize,
        /// Terms allowed.
        terms_max: usize,
    },
    /// The search over whole numbers ended before it found any.
    #[error("no whole numbers were found in {nodes_max} nodes")]
    OutOfNodes {
        /// Nodes allowed.
        nodes_max: u64,
    },
    /// Rounding errors that the solver could not overcome, or numbers that are not finite.
    #[error("the solver failed: {0}")]
    Failed(String),
}

/// What to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The sum of each factor times its value.
    pub objective: f64,
    /// Whether no choice has a larger one; false where the search ended early or within the gap.
    pub is_best: bool,
    /// The value of each column, within its range; whole where it must be. `[column]`
    pub values: Vec<f64>,
}

impl Solution {
    /// The value of a column.
    #[must_use]
    pub fn value(&self, column: Column) -> f64 {
        self.values[column.index()]
    }
}
