//! What is known to hold between the columns of a row, by their numbers. Without any law a tree is still certified soundly; with
//! them fewer certificates stay open.

use super::feature::Kinds;

/// Something that holds in every row, in raw units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// `out` is the product of the two.
    Product {
        /// What follows.
        out: usize,
        /// From what.
        factors: [usize; 2],
    },
    /// `out` is 1 + `over` / `under`.
    OnePlusRatio {
        /// What follows.
        out: usize,
        /// Above the line.
        over: usize,
        /// Below it.
        under: usize,
    },
    /// `least` is no more than `most`, among rows of these kinds.
    AtMost {
        /// The smaller one.
        least: usize,
        /// The larger one.
        most: usize,
        /// Where it holds.
        among: Kinds,
    },
    /// Of two rows of one job `out` differs only where `from` does.
    Follows {
        /// What follows.
        out: usize,
        /// From what.
        from: usize,
    },
}
