//! Consolidated placement: a gang gets whole nodes and one node for the rest, or waits.
//!
//! # Source
//! The placer `consolidate` of the Helios (SC'21) and Lucid (ASPLOS'23) simulators. The Philly study describes the same
//! wish, which its scheduler gives up after a while; this one never does.

use crate::cluster::Cluster;
use crate::cluster::jobs::shape::Shape;
use crate::cluster::places::task_limits::NodeRooms;
use crate::cluster::tables::{Node, Slice};
use crate::ids::{GpuTypeId, NodeId};

impl Cluster {
    /// Whether a placement takes all GPUs of its nodes but for one node.
    #[must_use]
    pub(crate) fn is_consolidated(&self, placement: &[Slice]) -> bool {
        let partial = placement.iter().filter(|slice| {
            let kind = self.places.nodes[slice.node.index()].gpu_type;
            slice.num_gpus() < self.places.free.node_gpus_max[kind.index()]
        });
        partial.count() <= 1
    }

    /// One node if one holds the gang: the one with the fewest free GPUs. Otherwise whole nodes, in one rack where the
    /// rack that holds the gang on the fewest nodes has them, and the rest on the node with most free GPUs.
    pub(in crate::cluster) fn place_consolidated(
        &self,
        kind: GpuTypeId,
        num_gpus: u32,
        out: &mut Vec<Slice>,
    ) -> bool {
        if !self.places.free.fits_consolidated(kind, num_gpus) {
            return false;
        }
        let start = out.len();
        self.place_tight(kind, num_gpus, out);
        if !self.is_consolidated(&out[start..]) {
            out.truncate(start);
            self.place_in_order(kind, num_gpus, self.places.free.levels(kind).rev(), out);
        }
        debug_assert!(self.is_consolidated(&out[start..]), "it was found to fit");
        true
    }

    /// The largest gang that a type can hold while no other job runs, on those of its nodes that count.
    pub(in crate::cluster) fn gang_max(
        &self,
        kind: GpuTypeId,
        shape: Shape,
        counts: impl Fn(&Node) -> bool,
    ) -> u32 {
        let nodes = (0..).map(NodeId).zip(&self.places.nodes);
        let nodes = nodes.filter(|(_, node)| node.gpu_type == kind && counts(node));
        let hosts = nodes.map(|(id, node)| self.hosts_when_empty(id, node, shape));
        if shape.tasks.nodes_max > 0 {
            return NodeRooms::of(hosts).most(shape.tasks);
        }
        if !(self.facts.capabilities.consolidated && shape == Shape::PLAIN) {
            return hosts.sum();
        }
        let size = self.places.free.node_gpus_max[kind.index()];
        let (whole, rest) = hosts.fold((0, 0), |(whole, rest), num| match num == size {
            true => (whole + num, rest),
            false => (whole, num.max(rest)),
        });
        whole + rest
    }
}
