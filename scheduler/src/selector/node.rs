//! The nodes of a selector.

/// Most leaves of a selector.
pub const MAX_LEAVES: usize = 64;

/// One node. Children are places in the list of nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectorNode {
    /// Clusters whose feature is at most the threshold go left, all others right.
    Split {
        /// Index in the joined row; a global feature.
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
        /// Id for logs; unique in the selector, stable under editing.
        id: u32,
        /// Name of the heuristic that decides.
        rule: String,
    },
}
