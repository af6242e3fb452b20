//! Sets of nodes to which a site's rules keep jobs. A set is part of a job's shape, so whatever looks a shape up node by node obeys.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::cluster_spec::AllowedNodes;
use crate::ids::NodeId;

/// The sets of a cluster by their numbers, 1 and up; as bit masks, a word for 64 nodes.
#[derive(Clone, Debug, Default)]
pub struct AllowedSets {
    rows: Vec<Arc<[u64]>>,
    numbers: BTreeMap<Arc<[u64]>, AllowedNodes>,
}

impl AllowedSets {
    fn number(&mut self, words: Arc<[u64]>) -> Option<AllowedNodes> {
        if let Some(known) = self.numbers.get(&words) {
            return Some(*known);
        }
        let number = AllowedNodes(u16::try_from(self.rows.len() + 1).ok()?);
        self.rows.push(words.clone());
        self.numbers.insert(words, number);
        Some(number)
    }

    pub(in crate::cluster) fn knows(&self, set: AllowedNodes) -> bool {
        usize::from(set.0) <= self.rows.len()
    }

    /// Whether a node is in a set.
    #[must_use]
    #[inline]
    pub fn allow(&self, set: AllowedNodes, node: NodeId) -> bool {
        set.is_all() || self.has(set, node)
    }

    #[inline(never)]
    fn has(&self, set: AllowedNodes, node: NodeId) -> bool {
        let words = &self.rows[usize::from(set.0) - 1];
        words[node.index() / 64] >> (node.index() % 64) & 1 == 1
    }
}

impl Cluster {
    /// The set of these nodes, for [`crate::Resources::nodes`]; the same number for the same nodes. None if there are more than
    /// 65,535 sets. Nodes that are not there count for nothing.
    pub fn allow(&mut self, nodes: impl IntoIterator<Item = NodeId>) -> Option<AllowedNodes> {
        let num_nodes = self.places.nodes.len();
        let mut words = vec![0_u64; num_nodes.div_ceil(64)];
        let mut num = 0;
        for node in nodes.into_iter().filter(|node| node.index() < num_nodes) {
            let (word, bit) = (&mut words[node.index() / 64], 1 << (node.index() % 64));
            num += usize::from(*word & bit == 0);
            *word |= bit;
        }
        match num == num_nodes {
            true => Some(AllowedNodes::ALL),
            false => self.jobs.allowed.number(words.into()),
        }
    }

    /// Whether a node is in a set.
    #[must_use]
    #[inline]
    pub fn allows(&self, set: AllowedNodes, node: NodeId) -> bool {
        self.jobs.allowed.allow(set, node)
    }

    /// The sets that [`Cluster::allow`] has made.
    #[must_use]
    pub fn allowed(&self) -> &AllowedSets {
        &self.jobs.allowed
    }
}
