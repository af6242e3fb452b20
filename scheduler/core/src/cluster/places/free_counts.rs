//! Free GPUs of one type counted node by node, as they would be after starts that have not happened: where further gangs would then
//! go, without a copy of the cluster. Gangs of whole GPUs go where [`Cluster::place`] puts them tightly.

use std::ops::Range;

use crate::cluster::Cluster;
use crate::cluster::tables::{Node, Rack, Slice};
use crate::ids::GpuTypeId;

/// Free GPUs of each node of a type.
#[derive(Clone, Debug)]
pub(crate) struct FreeCounts {
    /// Zero for nodes of other types. `[node]`
    nodes: Vec<u32>,
    /// Zero for racks of other types. `[rack]`
    racks: Vec<u32>,
    /// Nodes of the gang that is being placed, and its GPUs on each.
    taken: Vec<(usize, u32)>,
}

impl FreeCounts {
    /// As they are now.
    pub(crate) fn now(cluster: &Cluster, kind: GpuTypeId) -> FreeCounts {
        let of_node = |node: &Node| if node.gpu_type == kind { node.num_free() } else { 0 };
        let of_rack = |rack: &Rack| if rack.gpu_type == kind { rack.num_free } else { 0 };
        FreeCounts {
            nodes: cluster.places.nodes.iter().map(of_node).collect(),
            racks: cluster.places.racks.iter().map(of_rack).collect(),
            taken: Vec::new(),
        }
    }

    /// A start on these GPUs, which are free.
    pub(crate) fn take(&mut self, cluster: &Cluster, placement: &[Slice]) {
        for slice in placement {
            self.give_up(cluster, slice.node.index(), slice.num_gpus());
        }
    }

    /// A start of a gang at the tightest place that is left; the numbers of its nodes and racks, of which several count as two. None
    /// if it does not fit.
    pub(crate) fn start(&mut self, cluster: &Cluster, num_gpus: u32) -> Option<(u32, u32)> {
        let num_racks = self.place(cluster, num_gpus)?;
        let taken = std::mem::take(&mut self.taken);
        for (node, num_gpus) in &taken {
            self.give_up(cluster, *node, *num_gpus);
        }
        let num_nodes = taken.len() as u32;
        self.taken = taken;
        Some((num_nodes, num_racks))
    }

    fn give_up(&mut self, cluster: &Cluster, node: usize, num_gpus: u32) {
        self.nodes[node] -= num_gpus;
        self.racks[cluster.places.nodes[node].rack.index()] -= num_gpus;
    }

    /// Writes the tightest place of a gang: one node, or the nodes of one rack, or any. Its racks; none if it does not fit, or if
    /// links decide among racks.
    fn place(&mut self, cluster: &Cluster, num_gpus: u32) -> Option<u32> {
        self.taken.clear();
        let single = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, free)| **free >= num_gpus);
        if let Some((node, _)) = single.min_by_key(|(node, free)| (**free, *node)) {
            self.taken.push((node, num_gpus));
            return Some(1);
        }
        let mut best: Option<(usize, u32, usize)> = None;
        for rack in 0..self.racks.len() {
            if self.racks[rack] < num_gpus {
                continue;
            }
            self.fill(nodes_of(cluster, rack), num_gpus);
            let key = (self.taken.len(), self.racks[rack], rack);
            if best.is_none_or(|other| key < other) {
                best = Some(key);
            }
        }
        let (nodes, num_racks) = match best {
            Some((_, _, rack)) => (nodes_of(cluster, rack), 1),
            // Links tell apart what these counts do not.
            None if cluster.places.links.is_some() => return None,
            None => (0..self.nodes.len(), 2),
        };
        self.fill(nodes, num_gpus).then_some(num_racks)
    }

    /// Takes from the emptiest of some nodes first; whether they hold the gang.
    fn fill(&mut self, nodes: Range<usize>, num_gpus: u32) -> bool {
        self.taken.clear();
        let (mut rest, most) = (num_gpus, self.nodes[nodes.clone()].iter().copied().max());
        for free in (1..=most.unwrap_or(0)).rev() {
            for node in nodes.clone().filter(|node| self.nodes[*node] == free) {
                if rest > 0 {
                    self.taken.push((node, free.min(rest)));
                    rest -= free.min(rest);
                }
            }
        }
        rest == 0
    }
}

/// The nodes of a rack.
fn nodes_of(cluster: &Cluster, rack: usize) -> Range<usize> {
    let rack = &cluster.places.racks[rack];
    rack.first_node.index()..rack.first_node.index() + rack.num_nodes as usize
}
