//! A set of nodes as a two-level bitset: insert, remove and "lowest member" in a few instructions, no allocation.

use crate::ids::NodeId;

/// Nodes of one kind, always visited in order of their ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeSet {
    words: Vec<u64>,
    summary: Vec<u64>,
    len: u32,
}

impl NodeSet {
    /// An empty set for ids below `num_nodes`.
    pub(crate) fn with_capacity(num_nodes: usize) -> NodeSet {
        let words = num_nodes.div_ceil(64);
        NodeSet {
            words: vec![0; words],
            summary: vec![0; words.div_ceil(64)],
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn insert(&mut self, node: NodeId) {
        let (word, bit) = (node.index() / 64, node.index() % 64);
        debug_assert_eq!(self.words[word] >> bit & 1, 0, "{node:?} is already in the set");
        self.words[word] |= 1 << bit;
        self.summary[word / 64] |= 1 << (word % 64);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, node: NodeId) {
        let (word, bit) = (node.index() / 64, node.index() % 64);
        debug_assert_eq!(self.words[word] >> bit & 1, 1, "{node:?} is not in the set");
        self.words[word] &= !(1 << bit);
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        self.len -= 1;
    }

    #[cfg(test)]
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.words[node.index() / 64] >> (node.index() % 64) & 1 == 1
    }

    /// The member with the lowest id that is at least `from`.
    pub(crate) fn first_from(&self, from: usize) -> Option<NodeId> {
        let mut word = from / 64;
        if word >= self.words.len() {
            return None;
        }
        let masked = self.words[word] & (u64::MAX << (from % 64));
        if masked != 0 {
            return Some(NodeId((word * 64) as u32 + masked.trailing_zeros()));
        }
        word += 1;
        let mut block = word / 64;
        while block < self.summary.len() {
            let keep = if block == word / 64 {
                u64::MAX << (word % 64)
            } else {
                u64::MAX
            };
            let summary = self.summary[block] & keep;
            if summary != 0 {
                let found = block * 64 + summary.trailing_zeros() as usize;
                return Some(NodeId((found * 64) as u32 + self.words[found].trailing_zeros()));
            }
            block += 1;
        }
        None
    }

    /// Members in order of their ids, from `from` on.
    pub(crate) fn iter_from(&self, from: usize) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = from;
        std::iter::from_fn(move || {
            let node = self.first_from(next)?;
            next = node.index() + 1;
            Some(node)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_bitset_behaves_like_an_ordered_set(
            toggles in proptest::collection::vec(0_u32..9000, 1..200), from in 0_usize..9100,
        ) {
            let mut set = NodeSet::with_capacity(9000);
            let mut oracle = BTreeSet::new();
            for id in toggles {
                if oracle.insert(id) { set.insert(NodeId(id)); } else { oracle.remove(&id); set.remove(NodeId(id)); }
                prop_assert_eq!(set.contains(NodeId(id)), oracle.contains(&id));
            }
            prop_assert_eq!(set.is_empty(), oracle.is_empty());
            let found: Vec<u32> = set.iter_from(from).map(|node| node.0).collect();
            let expected: Vec<u32> = oracle.range(from as u32..).copied().collect();
            prop_assert_eq!(found, expected);
        }
    }
}
