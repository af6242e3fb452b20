//! Places that a gang keeps when a node of it goes down: its GPUs on other nodes, for a while. No other job gets them. Once as
//! many GPUs are free as it has lost, in whole tasks, it starts again on both. When the time is over, or a scheduler has started
//! it elsewhere, they are free.
//!
//! # Source
//! Ours. What the lack of it costs: a gang that loses a pod on Kubernetes loses the node too, and has to wait for a whole one.
//!
//! # What is deliberately not here
//! Gangs that come with CPU or memory, share GPUs, are elastic, run as copies or on several types, or may not lie scattered: they
//! give up all at once, as every gang does without this.

use std::cmp::Reverse;

use pleach_scheduler::cluster::{Cluster, JobState, Node, NodeState, Placement, Slice};
use pleach_scheduler::{ActionKind, JobId, NodeId, Time};

use super::World;
use super::kept::Kept;
use crate::availability::NodeChange;

/// Whether a running gang would keep what it has on other nodes than one.
fn keeps(cluster: &Cluster, id: JobId, node: NodeId) -> bool {
    let job = cluster.job(id);
    let is_scattered = !(cluster.capabilities().consolidated && job.request.resources.tasks.is_any());
    let is_simple = !job.is_sharing && !job.is_forked && !cluster.capabilities().can(ActionKind::MixTypes);
    is_scattered
        && is_simple
        && cluster.class(job.request.class).elastic.is_none()
        && cluster.shape(job.granted).is_gpus_alone()
        && job.placement.iter().any(|slice| slice.node != node)
}

/// Where the GPUs go that a gang has lost, beside those that it keeps: on its own nodes first, then on those with most room. None if
/// there are too few in whole tasks.
fn place_lost(cluster: &Cluster, id: JobId, kept: &Kept) -> Option<Placement> {
    let request = &cluster.job(id).request;
    let tasks = request.resources.tasks;
    let own = |node: NodeId| kept.slices.iter().find(|slice| slice.node == node);
    let num_own = |node: NodeId| own(node).map_or(0, |slice| slice.num_gpus());
    let room = |node: NodeId, row: &Node| {
        let more = tasks
            .num_on(row.num_free() + num_own(node))
            .saturating_sub(num_own(node));
        more.min(row.num_free())
    };
    let mut rooms: Vec<(bool, u32, NodeId)> = Vec::new();
    for (row, node) in cluster.nodes().iter().enumerate() {
        let id = NodeId(row as u32);
        if node.state == NodeState::Up && node.gpu_type == kept.gpu_type && room(id, node) > 0 {
            rooms.push((own(id).is_none(), room(id, node), id));
        }
    }
    rooms.sort_unstable_by_key(|(is_new, room, id)| (*is_new, Reverse(*room), *id));
    let mut placement = kept.slices.clone();
    let num_kept: u32 = placement.iter().map(|slice| slice.num_gpus()).sum();
    let mut rest = request.num_gpus - num_kept;
    for (is_new, room, node) in rooms {
        if rest == 0 || (is_new && placement.len() == tasks.most_nodes()) {
            break;
        }
        let take = rest.min(room);
        let gpus = cluster.nodes()[node.index()].lowest_free(take);
        rest -= take;
        match placement.iter_mut().find(|slice| slice.node == node) {
            Some(slice) => slice.gpus |= gpus,
            None => placement.push(Slice { node, gpus }),
        }
    }
    (rest == 0).then_some(placement)
}

impl World {
    /// Before a node changes its state: what is kept there is lost. Returns the gangs that keep places elsewhere if the node goes
    /// down. Where GPUs are leased in rounds no places are kept: the leases decide.
    pub(super) fn before_change(&mut self, change: NodeChange) -> Vec<(JobId, Kept)> {
        if self.kept.keep == Time::ZERO || self.rounds.is_some() {
            return Vec::new();
        }
        for kept in self.kept.gangs.values_mut() {
            let is_there = |slice: &&Slice| slice.node == change.node;
            if let Some(slice) = kept.slices.iter().find(is_there).copied() {
                self.cluster.give_up_kept(&[slice]);
                kept.slices.retain(|slice| slice.node != change.node);
            }
        }
        self.kept.gangs.retain(|_, kept| !kept.slices.is_empty());
        if change.state != NodeState::Down {
            return Vec::new();
        }
        let mut jobs = Vec::new();
        self.cluster.jobs_of(change.node, &mut jobs);
        jobs.retain(|id| keeps(&self.cluster, *id, change.node));
        let until = self.cluster.now() + self.kept.keep;
        let of = |id: JobId| {
            let job = self.cluster.job(id);
            let is_up = |slice: &&Slice| self.cluster.nodes()[slice.node.index()].state == NodeState::Up;
            let others = job.placement.iter().filter(|slice| slice.node != change.node);
            let slices: Placement = others.filter(is_up).copied().collect();
            let gpu_type = job.gpu_type;
            (!slices.is_empty()).then_some((
                id,
                Kept {
                    slices,
                    gpu_type,
                    until,
                },
            ))
        };
        jobs.into_iter().filter_map(of).collect()
    }

    /// The node has changed, and these gangs keep what is left to them.
    pub(super) fn keep_places(&mut self, gangs: Vec<(JobId, Kept)>) {
        for (id, kept) in gangs {
            if self.cluster.job(id).state == JobState::Pending {
                self.cluster.keep(&kept.slices);
                self.kept.gangs.insert(id, kept);
            }
        }
    }

    /// Gangs that keep places start where their lost tasks have room. Those that were started elsewhere, and those whose time is
    /// over, give their places up.
    pub(super) fn settle_kept_places(&mut self) {
        if self.kept.gangs.is_empty() {
            return;
        }
        let now = self.cluster.now();
        let ids: Vec<JobId> = self.kept.gangs.keys().copied().collect();
        for id in ids {
            let waits = self.cluster.job(id).state == JobState::Pending;
            let kept = &self.kept.gangs[&id];
            let has_room = waits && self.cluster.has_room(self.cluster.demand(id));
            let placement = has_room.then(|| place_lost(&self.cluster, id, kept)).flatten();
            if waits && now < kept.until && placement.is_none() {
                continue;
            }
            if let Some(kept) = self.kept.gangs.remove(&id) {
                self.cluster.give_up_kept(&kept.slices);
            }
            if let Some(placement) = placement {
                self.cluster.start(id, placement);
                self.carry_out();
            }
        }
    }
}
