//! What a node has left to give, and its GPUs by their numbers in the tables.

use pleach_scheduler::cluster::NodeState;

use crate::snapshot::NodeSeen;

/// A GPU type of the tables: its name in the batch system, and whether its GPUs are given in shares.
pub(super) type Kind<'a> = (&'a str, bool);

/// Nodes that take part, with the GPUs that are left to give.
pub(super) struct Offer<'a> {
    pub(super) seen: &'a NodeSeen,
    pub(super) kind: usize,
    pub(super) num_gpus: u32,
    pub(super) state: NodeState,
}

impl Offer<'_> {
    /// The GPU of the tables that is the one with this index in the node; none where others have it.
    pub(super) fn row_of(&self, index: u32) -> Option<u32> {
        let taken = self.seen.shared.map_or(0, |shared| shared.gpus_taken);
        let is_there = index < self.seen.num_gpus && taken >> index & 1 == 0;
        is_there.then(|| index - (taken & ((1 << index) - 1)).count_ones())
    }
}
