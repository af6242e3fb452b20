//! A regression tree learner: weighted rows, binned features, best split first.
//!
//! Sums are kept as fixed-point integers, so they are exact: a histogram is the parent's less the sibling's without any
//! rounding, and the tree is the same at any number of threads. Features are worked on in parallel and compared in their
//! order. A grown tree remembers the order of its splits, so the trees of all smaller sizes are in it.
//!
//! # Source
//! CART (Breiman et al., 1984) for the criterion; best-first growth: Shi, 2007; histograms with subtraction of the
//! sibling as in LightGBM (Ke et al., NeurIPS'17), from their descriptions.

mod bins;
mod grow;
#[cfg(test)]
mod optimal_tests;
mod sums;
#[cfg(test)]
mod tests;
mod trend;
#[cfg(test)]
mod trend_tests;

pub use bins::Binned;
pub use grow::grow;
pub use trend::Trend;

use pleach_scheduler::Problem;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::tree::{MAX_DEPTH, Node};

/// Most rows of one fit; the bound keeps every sum exact.
pub const MAX_ROWS: usize = 1 << 22;
/// Most leaves of one fit.
pub(crate) const MAX_LEAVES: usize = 256;
settings! {
    /// How a tree grows.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CartConfig {
        /// Bins of a feature, 2 to 256. A feature with fewer distinct values is split exactly.
        pub bins: usize = 255, in 2..=256;
        /// Fewest rows of a leaf, at least 1. *Assumed*.
        pub leaf_rows_min: u32 = 20, in 1..;
        /// Least share of the whole weight in a leaf, 0 to 0.5. *Assumed*.
        pub leaf_weight_min: f64 = 1e-4, in 0.0..=0.5;
        /// Splits must lower the squared error by this share of the root's, 0 to 1.
        pub gain_min: f64 = 1e-9, in 0.0..=1.0;
        /// Most splits on a path, 1 to 64.
        pub depth_max: usize = 16, in 1..=MAX_DEPTH;
    }
}

impl CartConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        self.check_at("cart", "")
    }
}

/// One node of a grown tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrownNode {
    /// Weighted mean of the targets.
    pub mean: f64,
    /// Number of rows.
    pub samples: u64,
    /// Their weight.
    pub weight: f64,
    /// How it is split; none for a leaf of the largest tree.
    pub split: Option<GrownSplit>,
}

/// A split of a grown tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrownSplit {
    /// 0 for the first split of the tree, then in the order of growth.
    pub order: usize,
    /// The feature.
    pub feature: usize,
    /// Rows with at most this value go left.
    pub threshold: f32,
    /// Place of the left child.
    pub left: usize,
    /// Place of the right child.
    pub right: usize,
    /// By how much the weighted squared error falls.
    pub gain: f64,
}

/// A grown tree, and in it every smaller one.
#[derive(Clone, Debug, PartialEq)]
pub struct Grown {
    /// The root is first.
    pub nodes: Vec<GrownNode>,
}

impl Grown {
    /// Leaves of the largest tree.
    #[must_use]
    pub fn num_leaves(&self) -> usize {
        self.nodes.len().div_ceil(2)
    }

    /// The tree after the first `num_leaves - 1` splits, as nodes for [`pleach_scheduler::tree::Tree::new`].
    #[must_use]
    pub fn nodes_with(&self, num_leaves: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.write(0, num_leaves, &mut nodes, &mut 0);
        nodes
    }

    /// What the tree of [`Grown::nodes_with`] answers for a row, given by its features.
    #[must_use]
    pub fn answer(&self, num_leaves: usize, value: impl Fn(usize) -> f32) -> f64 {
        let mut at = 0;
        loop {
            let node = &self.nodes[at];
            match node.split {
                Some(split) if split.order + 1 < num_leaves => {
                    at = if value(split.feature) <= split.threshold {
                        split.left
                    } else {
                        split.right
                    };
                }
                _ => return node.mean,
            }
        }
    }

    fn write(&self, at: usize, num_leaves: usize, nodes: &mut Vec<Node>, num_ids: &mut u32) -> u32 {
        let place = nodes.len();
        let grown = &self.nodes[at];
        let leaf = Node::Leaf {
            id: *num_ids,
            score: grown.mean as f32,
            samples: grown.samples,
            weight: grown.weight,
        };
        nodes.push(leaf);
        match grown.split {
            Some(split) if split.order + 1 < num_leaves => {
                let left = self.write(split.left, num_leaves, nodes, num_ids);
                let right = self.write(split.right, num_leaves, nodes, num_ids);
                nodes[place] = Node::Split {
                    feature: split.feature as u16,
                    threshold: split.threshold,
                    left,
                    right,
                };
            }
            _ => *num_ids += 1,
        }
        place as u32
    }
}
