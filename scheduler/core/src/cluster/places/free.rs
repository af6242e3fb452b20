//! Free GPUs, indexed so that the best node for a gang is found without a walk over the cluster.

use crate::cluster::places::node_set::NodeSet;
use crate::cluster::tables::{Node, Rack};
use crate::ids::{GpuTypeId, NodeId};

/// Nodes by type and number of free GPUs.
#[derive(Clone, Debug)]
pub(crate) struct FreeIndex {
    /// `[type][free]`
    by_free: Vec<Vec<NodeSet>>,
    /// Bit mask of the numbers of free GPUs that some node of a type has; bit 0 stands for one free GPU. `[type]`
    levels: Vec<u64>,
    /// Free GPUs of each type.
    pub(crate) num_free: Vec<u32>,
    /// Free GPUs of the type that has most of them.
    pub(crate) num_free_max: u32,
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
            levels: vec![0; num_types],
            num_free: vec![0; num_types],
            num_free_max: 0,
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
        index.num_free_max = index.num_free.iter().copied().max().unwrap_or(0);
        for rack in racks {
            let kind = rack.gpu_type.index();
            index.rack_gpus_max[kind] = index.rack_gpus_max[kind].max(rack.num_gpus);
        }
        index.by_free = (0..num_types)
            .map(|kind| vec![NodeSet::with_capacity(nodes.len()); index.node_gpus_max[kind] as usize + 1])
            .collect();
        for (id, node) in nodes.iter().enumerate() {
            let (kind, free) = (node.gpu_type.index(), node.num_free());
            index.by_free[kind][free as usize].insert(NodeId(id as u32));
            index.levels[kind] |= level(free);
        }
        index
    }

    /// Moves a node from its old number of free GPUs to its present one.
    pub(crate) fn moved(&mut self, id: NodeId, node: &Node, free_before: u32) {
        let kind = node.gpu_type.index();
        let free = node.num_free();
        if free != free_before {
            let left = &mut self.by_free[kind][free_before as usize];
            left.remove(id);
            if left.is_empty() {
                self.levels[kind] &= !level(free_before);
            }
            self.by_free[kind][free as usize].insert(id);
            self.levels[kind] |= level(free);
            self.num_free[kind] = self.num_free[kind] - free_before + free;
            self.num_free_max = self.num_free.iter().copied().max().unwrap_or(0);
        }
    }

    /// The node of this type with the fewest free GPUs that still holds `num_gpus`; the lowest id among equals.
    pub(crate) fn best_fit(&self, kind: GpuTypeId, num_gpus: u32) -> Option<NodeId> {
        let too_small = level(num_gpus).checked_sub(1)?;
        let levels = self.levels[kind.index()] & !too_small;
        if levels == 0 {
            return None;
        }
        let free = levels.trailing_zeros() + 1;
        self.by_free[kind.index()][free as usize].first_from(0)
    }

    /// Whether whole nodes and one node for the rest hold a gang.
    pub(crate) fn fits_consolidated(&self, kind: GpuTypeId, num_gpus: u32) -> bool {
        let size = self.node_gpus_max[kind.index()].max(1);
        let (num_whole, rest) = (num_gpus / size, num_gpus % size);
        let num_empty = self.num_nodes_with(kind, size);
        // Where all whole nodes are taken, the rest goes to the node with most free GPUs among the others.
        let others = self.levels[kind.index()] & (level(size).max(1) - 1);
        num_empty > num_whole || (num_empty == num_whole && 64 - others.leading_zeros() >= rest)
    }

    /// The numbers of free GPUs that nodes of this type have, fewest first; none is zero.
    pub(crate) fn levels(&self, kind: GpuTypeId) -> impl DoubleEndedIterator<Item = u32> + use<> {
        let levels = self.levels[kind.index()];
        let bounds = if levels == 0 {
            1..1
        } else {
            levels.trailing_zeros() + 1..65 - levels.leading_zeros()
        };
        bounds.filter(move |free| levels & level(*free) != 0)
    }

    /// Nodes of this type with exactly `free` free GPUs, in order of their ids; `free` is at most that of the largest node.
    pub(crate) fn with_free(&self, kind: GpuTypeId, free: u32) -> impl Iterator<Item = NodeId> + '_ {
        self.by_free[kind.index()][free as usize].iter_from(0)
    }

    /// Number of nodes of this type with exactly `free` free GPUs.
    pub(crate) fn num_nodes_with(&self, kind: GpuTypeId, free: u32) -> u32 {
        self.by_free[kind.index()]
            .get(free as usize)
            .map_or(0, NodeSet::len)
    }

    /// The largest number of free GPUs in one node of this type.
    pub(crate) fn largest_free(&self, kind: GpuTypeId) -> u32 {
        64 - self.levels[kind.index()].leading_zeros()
    }
}

/// The bit of a number of free GPUs, 1 to 64; none for other numbers.
fn level(free: u32) -> u64 {
    free.checked_sub(1)
        .and_then(|bit| 1_u64.checked_shl(bit))
        .unwrap_or(0)
}
