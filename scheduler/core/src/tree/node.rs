//! The nodes of a tree.

/// Most nodes of a tree, splits and leaves together.
pub(crate) const MAX_NODES: usize = 2047;
/// Most splits on a path.
pub const MAX_DEPTH: usize = 64;

/// One node. Children are places in the list of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node {
    /// Rows whose feature is at most the threshold go left, all others right.
    Split {
        /// Index in the joined row.
        feature: u16,
        /// Scaled, as in the observation.
        threshold: f32,
        /// Where the condition holds.
        left: u32,
        /// Where it does not.
        right: u32,
    },
    /// The end of a path.
    Leaf {
        /// Id for logs; unique in the tree, stable under editing.
        id: u32,
        /// The score of a candidate that ends here; larger is better.
        score: f32,
        /// Rows of the training data that ended here.
        samples: u64,
        /// Their weight.
        weight: f64,
    },
}
