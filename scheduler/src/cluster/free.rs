//! Free GPUs, indexed so that the best node for a gang is found without a walk over the cluster.

use super::node_set::NodeSet;
use super::tables::{Node, Rack};
use crate::ids::{GpuTypeId, NodeId};

/// Nodes by type and number of free GPUs.
#[derive(Clone, Debug)]
pub(crate) struct FreeIndex {
    /// `[type][free]`
    by_free: Vec<Vec<NodeSet>>,
    /// Free GPUs of each type.
    pub(crate) num_free: Vec<u32>,
    /// GPUs of each type.
    pub(crate) num_gpus: Vec<u32>,
    /// Most GPUs in one node of each type.
    pub(crate) node_gpus_max: Vec<u32>,
    /// Most GPUs in one rack of each type.
    pub(crate) rack_gpus_max: Vec<u32>,
}

impl FreeIndex {
    pub(crate) fn new(num_types: usize, nodes: &[Node], racks: &[Rack]) -> FreeIndex {
        let mut index = FreeIndex {
            by_free: Vec::new(),
            num_free: vec![0; num_types],
            num_gpus: vec![0; num_types],
            node_gpus_max: vec![0; num_types],
            rack_gpus_max: vec![0; num_types],
        };
        for node in nodes {
            let kind = node.gpu_type.index();
            index.num_gpus[kind] += node.num_gpus;
            index.num_free[kind] += node.num_free();
            index.node_gpus_max[kind] = index.node_gpus_max[kind].max(node.num_gpus);
        }
        for rack in racks {
            let kind = rack.gpu_type.index();
            index.rack_gpus_max[kind] = index.rack_gpus_max[kind].max(rack.num_gpus);
        }
        index.by_free = (0..num_types)
            .map(|kind| vec![NodeSet::with_capacity(nodes.len()); index.node_gpus_max[kind] as usize + 1])
            .collect();
        for (id, node) in nodes.iter().enumerate() {
            index.by_free[node.gpu_type.index()][node.num_free() as usize].insert(NodeId(id as u32));
        }
        index
    }

    /// Moves a node from its old number of free GPUs to its present one.
    pub(crate) fn moved(&mut self, id: NodeId, node: &Node, free_before: u32) {
        let kind = node.gpu_type.index();
        let free = node.num_free();
        if free != free_before {
            self.by_free[kind][free_before as usize].remove(id);
            self.by_free[kind][free as usize].insert(id);
            self.num_free[kind] = self.num_free[kind] - free_before + free;
        }
    }

    /// The node of this type with the fewest free GPUs that still holds `num_gpus`; the lowest id among equals.
    pub(crate) fn best_fit(&self, kind: GpuTypeId, num_gpus: u32) -> Option<NodeId> {
        let sets = &self.by_free[kind.index()];
        sets.get(num_gpus as usize..)?
            .iter()
            .find_map(|set| set.first_from(0))
    }

    /// Nodes of this type with exactly `free` free GPUs, in order of their ids.
    pub(crate) fn with_free(&self, kind: GpuTypeId, free: u32) -> impl Iterator<Item = NodeId> + '_ {
        self.by_free[kind.index()]
            .get(free as usize)
            .into_iter()
            .flat_map(|set| set.iter_from(0))
    }

    /// Number of nodes of this type with exactly `free` free GPUs.
    pub(crate) fn num_nodes_with(&self, kind: GpuTypeId, free: u32) -> u32 {
        self.by_free[kind.index()]
            .get(free as usize)
            .map_or(0, NodeSet::len)
    }

    /// The largest number of free GPUs in one node of this type.
    pub(crate) fn largest_free(&self, kind: GpuTypeId) -> u32 {
        let sets = &self.by_free[kind.index()];
        (1..sets.len())
            .rev()
            .find(|&free| !sets[free].is_empty())
            .unwrap_or(0) as u32
    }
}
