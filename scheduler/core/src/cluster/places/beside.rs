//! Nodes that are held for a gang which is to start later, and where others may go beside it.
//!
//! A job that is still there when the gang starts may take of a held node what the gang leaves of it, in GPUs, CPU and host
//! memory; of every other node all that is free. A share of a GPU counts as a GPU there: it is not known which GPUs of a node are
//! free later.

use crate::cluster::jobs::queue::Demand;
use crate::cluster::jobs::shape::{Shape, ShapeId};
use crate::cluster::places::task_limits::NodeRooms;
use crate::cluster::places::tasks::{Spare, TaskRoom};
use crate::cluster::tables::{Node, Slice};
use crate::cluster::{Cluster, Template};
use crate::ids::{GpuTypeId, NodeId};

/// What others may take of the held nodes beyond the gang's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldNodes {
    /// By node.
    rows: Vec<(NodeId, Spare)>,
}

impl HeldNodes {
    /// The held nodes, with the GPUs of each that others may take; lowest node first.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        self.rows.iter().map(|(node, spare)| (*node, spare.num_gpus))
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    pub(in crate::cluster) fn add(&mut self, node: NodeId, spare: Spare) {
        self.rows.push((node, spare));
    }

    pub(in crate::cluster) fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|(node, _)| *node);
    }

    /// Holds nodes whole.
    #[cfg(test)]
    pub(crate) fn whole(nodes: impl Iterator<Item = NodeId>) -> HeldNodes {
        HeldNodes {
            rows: nodes.map(|node| (node, Spare::default())).collect(),
        }
    }

    #[inline]
    fn row(&self, node: NodeId) -> Option<usize> {
        self.rows.binary_search_by_key(&node, |(node, _)| *node).ok()
    }

    #[inline]
    fn spare(&self, node: NodeId) -> Option<Spare> {
        self.row(node).map(|row| self.rows[row].1)
    }

    /// Whether a placement, with this beside each GPU, leaves the gang what it needs.
    #[must_use]
    pub fn allows(&self, shape: Shape, placement: &[Slice]) -> bool {
        placement.iter().all(|slice| {
            let spare = self.spare(slice.node);
            spare.is_none_or(|spare| spare.covers(Spare::of(shape, slice.num_gpus())))
        })
    }

    /// Books what [`HeldNodes::allows`] let through.
    pub(crate) fn book(&mut self, shape: Shape, placement: &[Slice]) {
        for slice in placement {
            if let Some(row) = self.row(slice.node) {
                let spare = &mut self.rows[row].1;
                *spare = spare.less(Spare::of(shape, slice.num_gpus()));
            }
        }
    }
}

impl TaskRoom {
    /// Holds the nodes on which the gang, which fits, would start: those of [`Cluster::place`] at its tightest. Where links decide among
    /// racks, those with most room. Returns the GPUs that all nodes have beside it.
    pub(crate) fn hold(&mut self, cluster: &Cluster, held: &mut HeldNodes) -> u32 {
        self.nodes.clear();
        for (id, free) in (0..).map(NodeId).zip(&self.free) {
            let room = cluster.room_in(id, *free, self.shape);
            if room > 0 {
                self.nodes.push((room, id, cluster.places.nodes[id.index()].rack));
            }
        }
        let gang = (self.kind, self.shape, self.num_gpus);
        let mut rest = self.num_gpus;
        held.clear();
        for (room, id, _) in cluster.in_turn(Template::Fastest, gang, &mut self.nodes) {
            let take = rest.min(*room);
            if take > 0 {
                let need = Spare::of(self.shape, take);
                held.add(*id, self.free[id.index()].less(need));
                rest -= take;
            }
        }
        held.sort();
        let all: u32 = self.free.iter().map(|free| free.num_gpus).sum();
        all.saturating_sub(self.num_gpus)
    }
}

impl Cluster {
    /// Free GPUs of a type, less those of held nodes that are not for others.
    pub(crate) fn num_free_beside(&self, held: &HeldNodes, kind: GpuTypeId) -> u32 {
        let kept = held.rows.iter().map(|(id, spare)| {
            let node = &self.places.nodes[id.index()];
            let free = if node.gpu_type == kind { node.num_free() } else { 0 };
            free.saturating_sub(spare.num_gpus)
        });
        self.num_free_of(kind) - kept.sum::<u32>()
    }

    /// Whether a gang of this demand fits on a type now, quotas apart, beside a gang that comes to the held nodes later; `num_free` is
    /// [`Cluster::num_free_beside`].
    pub(crate) fn fits_beside(
        &self,
        held: &HeldNodes,
        kind: GpuTypeId,
        demand: &Demand,
        num_free: u32,
    ) -> bool {
        if demand.num_gpus > num_free && self.shape(demand.shape).is_of_whole_gpus() {
            return false;
        }
        if demand.shape == ShapeId::PLAIN && !self.facts.capabilities.consolidated {
            return true;
        }
        let shape = self.shape(demand.shape);
        let nodes = (0..).map(NodeId).zip(&self.places.nodes);
        let nodes = nodes.filter(|(_, node)| node.gpu_type == kind);
        let rooms = NodeRooms::of(nodes.map(|(id, node)| self.hosts_beside(held, id, node, shape)));
        rooms.hold(shape.tasks, self.whole_gpus(kind, shape), demand.num_gpus)
    }

    /// As [`Cluster::place_gang`], beside a gang that comes to the held nodes later.
    pub(crate) fn place_beside(
        &self,
        held: &HeldNodes,
        template: Template,
        (kind, shape, num_gpus): (GpuTypeId, Shape, u32),
        out: &mut Vec<Slice>,
    ) -> bool {
        let one = Spare::of(shape, 1);
        let is_open = |node| held.spare(node).is_none_or(|spare| spare.covers(one));
        if num_gpus == 1 && shape.is_fractional() && self.place_part(kind, shape, is_open, out) {
            return true;
        }
        let hosts = |id, node: &Node| self.hosts_beside(held, id, node, shape);
        self.place_on_hosts(template, (kind, shape, num_gpus), hosts, out)
    }

    /// GPUs of a node for one gang, as [`Cluster::hosts`].
    fn hosts_beside(&self, held: &HeldNodes, id: NodeId, node: &Node, shape: Shape) -> u32 {
        let hosts = self.hosts(id, node, shape);
        let Some(spare) = held.spare(id).filter(|_| hosts > 0) else {
            return hosts;
        };
        let cpu_milli = node.cpu_milli_free.min(spare.cpu_milli);
        let served = shape.served_by(cpu_milli, node.memory_mib_free.min(spare.memory_mib));
        shape.tasks.num_on(hosts.min(spare.num_gpus).min(served))
    }
}
