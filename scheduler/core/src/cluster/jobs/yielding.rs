//! Which jobs yield where a lease needs GPUs and too few are free: those whose stop loses least, GPU·s.
//!
//! A stop loses what the job did since its last checkpoint, where it is not given the time to save, and the next restart, less what
//! the present one had still to pay, all of it times the GPUs of the gang: taking one GPU stops all of them. Of equals the one that
//! began last yields.
//!
//! Jobs yield for a lease on one node, where that loses least; over several nodes a lease takes free GPUs alone. Which of a node's
//! jobs give enough at the least loss is a knapsack. Of GPUs alone it is solved. Where the lease's GPUs come with CPU or host
//! memory, jobs are chosen by what they give of all three: no choice that could be part of the best one is left out while there are
//! at most [`CHOICES_MAX`] of those, so the best is found on nodes with eight jobs, and in practice with more; beyond that the ones
//! that lose most are dropped, and what is found makes room and may lose more than it had to.
//!
//! The rule is *ours*.

use std::collections::BTreeMap;

use crate::cluster::places::tasks::Spare;
use crate::cluster::tables::{JobState, NodeState, Placement, Slice, lowest};
use crate::cluster::{Cluster, Demand, Template};
use crate::ids::{JobId, NodeId, Time};

/// Most choices of jobs of a node that are kept beside each other: all that there are of eight jobs. *Ours.*
const CHOICES_MAX: usize = 256;

/// Room for a lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// GPUs that are free once these jobs are stopped.
    pub placement: Placement,
    /// Jobs to stop, those that lose least first, and what each loses, GPU·s; none where enough is free.
    pub stopped: Vec<(JobId, f64)>,
}

/// A job that may be stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yielding {
    /// What its stop would lose, GPU·s.
    pub loss_gpu_s: f64,
    /// When its run began.
    pub began: Time,
    /// Its row.
    pub id: JobId,
}

impl Cluster {
    /// What stopping a running job would lose, GPU·s.
    #[must_use]
    pub fn stop_loss_gpu_s(&self, id: JobId) -> f64 {
        let (now, job) = (self.now(), self.job(id));
        let done_s = job.executed_s_at(now);
        let kept_s = self.kept_at_stop_s(id, done_s, job.saved_s, 1.0);
        let unpaid_s = (job.cost_left_s - (now - job.rate_since).as_secs_f64()).max(0.0);
        let restart_s = self.restart_cost_s(id) - unpaid_s;
        f64::from(job.num_held) * (done_s - kept_s + self.stop_cost_s(id) + restart_s)
    }

    /// Whether a node takes jobs and could be that of a demand, if its GPUs were free.
    #[must_use]
    pub fn is_open_to(&self, demand: Demand, node: NodeId) -> bool {
        let row = &self.places.nodes[node.index()];
        row.state == NodeState::Up
            && demand.types >> row.gpu_type.0 & 1 == 1
            && self.allows(self.shape(demand.shape).nodes, node)
    }

    /// Where a lease can be placed now: on free GPUs, else on those of jobs that have to be stopped for it, of those that may be. None
    /// where even that is too little.
    #[must_use]
    pub fn find_room(&self, demand: Demand, may_stop: &dyn Fn(JobId) -> bool) -> Option<Room> {
        if !self.has_room(demand) {
            return None;
        }
        if let Some(placement) = self.place_demand(demand) {
            let stopped = Vec::new();
            return Some(Room { placement, stopped });
        }
        let jobs = self.yielding(may_stop);
        let stopped: Vec<(JobId, f64)> = self
            .cheapest_on_a_node(demand, &jobs)?
            .into_iter()
            .map(|row| (jobs[row].id, jobs[row].loss_gpu_s))
            .collect();
        let placement = self.place_without(demand, stopped.iter().map(|(id, _)| *id))?;
        Some(Room { placement, stopped })
    }

    /// As [`Cluster::find_room`], and stops the jobs: all of them, or none where there is no room.
    pub fn make_room(&mut self, demand: Demand, may_stop: &dyn Fn(JobId) -> bool) -> Option<Room> {
        let room = self.find_room(demand, may_stop)?;
        room.stopped.iter().for_each(|(id, _)| self.preempt(*id));
        Some(room)
    }

    /// Where a demand that is not placed now would be on one node, if some jobs were stopped: on the first type, of its nodes on the
    /// one with least room.
    fn place_without(&self, demand: Demand, jobs: impl Iterator<Item = JobId>) -> Option<Placement> {
        let (shape, given) = (self.shape(demand.shape), self.given_by(jobs));
        let open = given.into_iter().filter_map(|(id, (gpus, mut spare))| {
            let node = &self.places.nodes[id.index()];
            spare.add(Spare::left_of(node));
            let room = self.room_in(id, spare, shape);
            let is_open = self.is_open_to(demand, id) && room >= demand.num_gpus;
            is_open.then_some((node.gpu_type, room, id, node.free | gpus))
        });
        let (_, _, node, gpus) = open.min()?;
        let gpus = lowest(gpus, demand.num_gpus);
        Some(Placement::from_slice(&[Slice { node, gpus }]))
    }

    fn place_demand(&self, demand: Demand) -> Option<Placement> {
        let (shape, mut slices) = (self.shape(demand.shape), Vec::new());
        let is_placed = self
            .types_in(demand.types)
            .any(|kind| self.place_gang(Template::BestValue, kind, shape, demand.num_gpus, &mut slices));
        is_placed.then(|| Placement::from_slice(&slices))
    }

    /// Jobs that may be stopped, in the order in which they yield: those that lose least first. Neither leases nor jobs that
    /// share GPUs are among them.
    #[must_use]
    pub fn yielding(&self, may_stop: &dyn Fn(JobId) -> bool) -> Vec<Yielding> {
        let can = |id: &JobId| {
            let job = self.job(*id);
            let is_whole = !job.is_sharing && job.request.resources.gpu_milli == 1000;
            job.state == JobState::Running && !job.is_lease && is_whole && may_stop(*id)
        };
        let seen = |id: JobId| Yielding {
            loss_gpu_s: self.stop_loss_gpu_s(id),
            began: self.job(id).run_start,
            id,
        };
        let mut jobs: Vec<Yielding> = self.running().filter(can).map(seen).collect();
        jobs.sort_unstable_by(|one, other| {
            let loss = one.loss_gpu_s.total_cmp(&other.loss_gpu_s);
            loss.then(other.began.cmp(&one.began)).then(other.id.cmp(&one.id))
        });
        jobs
    }

    /// Rows of the jobs that make room on one node at the least loss; none where no node could have it.
    fn cheapest_on_a_node(&self, demand: Demand, jobs: &[Yielding]) -> Option<Vec<usize>> {
        let shape = self.shape(demand.shape);
        let mut held: BTreeMap<NodeId, Vec<(usize, Give)>> = BTreeMap::new();
        for (row, job) in jobs.iter().enumerate() {
            let with = self.shape(self.job(job.id).granted);
            for slice in &self.job(job.id).placement {
                let give = Give {
                    loss_gpu_s: job.loss_gpu_s,
                    spare: Spare::of(with, slice.num_gpus()),
                };
                held.entry(slice.node).or_default().push((row, give));
            }
        }
        let mut best: Option<(f64, Vec<usize>)> = None;
        for (id, held) in held {
            let node = &self.places.nodes[id.index()];
            let is_open = self.is_open_to(demand, id);
            if !is_open || self.hosts_when_empty(id, node, shape) < demand.num_gpus {
                continue;
            }
            let need = Spare::left_of(node).lacks(Spare::of(shape, demand.num_gpus));
            let gives: Vec<Give> = held.iter().map(|(_, give)| *give).take(64).collect();
            let found = match shape.has_inputs() {
                true => cheapest_of_all(&gives, need),
                false => cheapest(&gives, need.num_gpus as usize),
            };
            let Some((loss, chosen)) = found else { continue };
            let chosen = held.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
            let rows: Vec<usize> = chosen.map(|(_, (row, _))| *row).collect();
            let is_better = |(least, other): &(f64, Vec<usize>)| {
                loss.total_cmp(least).then_with(|| rows.cmp(other)).is_lt()
            };
            if best.as_ref().is_none_or(is_better) {
                best = Some((loss, rows));
            }
        }
        best.map(|(_, rows)| rows)
    }
}

/// What a job gives back of a node, and what its stop loses.
#[derive(Clone, Copy, Debug)]
struct Give {
    loss_gpu_s: f64,
    spare: Spare,
}

/// The jobs that give so many GPUs at the least loss, as a bit mask, and that loss: of at most 64 jobs. Of equal losses, the
/// choice that comes first in the order.
fn cheapest(gives: &[Give], need: usize) -> Option<(f64, u64)> {
    let mut least: Vec<Option<(f64, u64)>> = vec![None; need + 1];
    least[0] = Some((0.0, 0));
    for (at, give) in gives.iter().enumerate() {
        for wanted in (1..=need).rev() {
            let Some((before, chosen)) = least[wanted.saturating_sub(give.spare.num_gpus as usize)] else {
                continue;
            };
            let total = before + give.loss_gpu_s;
            if least[wanted].is_none_or(|(other, _)| total < other) {
                least[wanted] = Some((total, chosen | 1 << at));
            }
        }
    }
    least[need]
}

/// Some of a node's jobs.
#[derive(Clone, Copy, Debug)]
struct Choice {
    loss_gpu_s: f64,
    /// What they leave to be wished for.
    missing: Spare,
    chosen: u64,
}

/// As [`cheapest`], of GPUs, CPU and host memory at once. A choice is dropped where another one loses no more and leaves no more to
/// be wished for, and where even all jobs to come would not make it enough.
fn cheapest_of_all(gives: &[Give], need: Spare) -> Option<(f64, u64)> {
    let mut choices = vec![Choice {
        loss_gpu_s: 0.0,
        missing: need,
        chosen: 0,
    }];
    for (at, give) in gives.iter().enumerate() {
        let mut rest = Spare::default();
        gives[at + 1..].iter().for_each(|give| rest.add(give.spare));
        let with = |before: &Choice| Choice {
            loss_gpu_s: before.loss_gpu_s + give.loss_gpu_s,
            missing: give.spare.lacks(before.missing),
            chosen: before.chosen | 1 << at,
        };
        let mut all: Vec<Choice> = choices.iter().map(with).collect();
        all.splice(0..0, choices.drain(..));
        all.retain(|choice| rest.covers(choice.missing));
        // Of equals those without it stay first.
        all.sort_by(|one, other| one.loss_gpu_s.total_cmp(&other.loss_gpu_s));
        for choice in all {
            let is_beaten = choices.iter().any(|other| choice.missing.covers(other.missing));
            if !is_beaten && choices.len() < CHOICES_MAX {
                choices.push(choice);
            }
        }
    }
    let mut whole = choices.iter().filter(|choice| choice.missing == Spare::default());
    whole.next().map(|choice| (choice.loss_gpu_s, choice.chosen))
}

#[cfg(test)]
#[path = "yielding_tests.rs"]
mod tests;
