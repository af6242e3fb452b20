//! Who yields where a lease needs GPUs and too few are free: the jobs whose stop loses least, GPU·s.
//!
//! A stop loses what the job did since its last checkpoint, where it is not given the time to save, and the next restart, less what
//! the present one had still to pay, all of it times the GPUs of the gang: taking one GPU stops all of them. Of equals the one that
//! began last yields.
//!
//! A lease that is to lie on one node is made room for on the node where that loses least. Which of its jobs give enough GPUs at the
//! least loss is a knapsack of at most 64 GPUs: it is solved, not guessed. Leases over several nodes take free GPUs alone.
//!
//! The rule is *ours*.

use std::collections::BTreeMap;

use super::tables::{JobState, NodeState, Placement, Slice};
use super::tasks::Spare;
use super::{Cluster, Demand, Template};
use crate::ids::{JobId, NodeId, Time};

/// Room for a lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// GPUs that are free, now that these jobs are stopped.
    pub placement: Placement,
    /// Jobs that were stopped, those that lost least first, and what each lost, GPU·s; none where enough was free.
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
        let row = &self.nodes[node.index()];
        row.state == NodeState::Up
            && demand.types >> row.gpu_type.0 & 1 == 1
            && self.allows(self.shape(demand.shape).nodes, node)
    }

    /// Where a lease can be placed now: on free GPUs, else on those of jobs that are stopped for it, of those that may be. None, and
    /// nobody is stopped, where even that is too little.
    pub fn make_room(&mut self, demand: Demand, may_stop: &dyn Fn(JobId) -> bool) -> Option<Room> {
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
        stopped.iter().for_each(|(id, _)| self.preempt(*id));
        let placement = self.place_demand(demand)?;
        Some(Room { placement, stopped })
    }

    fn place_demand(&self, demand: Demand) -> Option<Placement> {
        let (shape, mut slices) = (self.shape(demand.shape), Vec::new());
        let is_placed = self
            .types_in(demand.types)
            .any(|kind| self.place_gang(Template::BestValue, kind, shape, demand.num_gpus, &mut slices));
        is_placed.then(|| Placement::from_slice(&slices))
    }

    /// Jobs that may be stopped, in the order in which they yield: those that lose least first. Leases never are, nor who shares
    /// GPUs.
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
        let mut held: BTreeMap<NodeId, Vec<(usize, Slice)>> = BTreeMap::new();
        for (row, job) in jobs.iter().enumerate() {
            for slice in &self.job(job.id).placement {
                held.entry(slice.node).or_default().push((row, *slice));
            }
        }
        let mut best: Option<(f64, Vec<usize>)> = None;
        for (node, held) in held.iter().filter(|(node, _)| self.is_open_to(demand, **node)) {
            let free = self.nodes[node.index()].num_free();
            let need = demand.num_gpus.saturating_sub(free) as usize;
            let gives: Vec<(f64, u32)> = held
                .iter()
                .map(|(row, slice)| (jobs[*row].loss_gpu_s, slice.num_gpus()))
                .collect();
            let Some((loss, chosen)) = cheapest(&gives, need) else {
                continue;
            };
            let chosen: Vec<(usize, Slice)> = held
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen >> at & 1 == 1)
                .map(|(_, held)| *held)
                .collect();
            let rows: Vec<usize> = chosen.iter().map(|(row, _)| *row).collect();
            let is_better = |(least, other): &(f64, Vec<usize>)| {
                loss.total_cmp(least).then_with(|| rows.cmp(other)).is_lt()
            };
            if self.has_inputs(demand, *node, jobs, &chosen) && best.as_ref().is_none_or(is_better) {
                best = Some((loss, rows));
            }
        }
        best.map(|(_, rows)| rows)
    }

    /// Whether a node has all that the demand comes with, once some jobs are stopped.
    fn has_inputs(&self, demand: Demand, node: NodeId, jobs: &[Yielding], chosen: &[(usize, Slice)]) -> bool {
        let mut spare = Spare::left_of(&self.nodes[node.index()]);
        for (row, slice) in chosen {
            let with = self.shape(self.job(jobs[*row].id).granted);
            spare.add(Spare::of(with, slice.num_gpus()));
        }
        self.room_in(node, spare, self.shape(demand.shape)) >= demand.num_gpus
    }
}

/// Who gives so many GPUs at the least loss, as a bit mask, and that loss: of at most 64 jobs, each with its loss and its GPUs. Of
/// equal losses the one that comes first in the order.
fn cheapest(gives: &[(f64, u32)], need: usize) -> Option<(f64, u64)> {
    let mut least: Vec<Option<(f64, u64)>> = vec![None; need + 1];
    least[0] = Some((0.0, 0));
    for (at, (loss, num_gpus)) in gives.iter().enumerate().take(64) {
        for wanted in (1..=need).rev() {
            let Some((before, chosen)) = least[wanted.saturating_sub(*num_gpus as usize)] else {
                continue;
            };
            let total = before + loss;
            if least[wanted].is_none_or(|(other, _)| total < other) {
                least[wanted] = Some((total, chosen | 1 << at));
            }
        }
    }
    least[need]
}

#[cfg(test)]
#[path = "yielding_tests.rs"]
mod tests;
