//! Which jobs get GPUs of which type, by number alone: greedily by score, and a job that does not fit is passed over.
//!
//! This is list scheduling (Graham, SIAM J. Appl. Math. 1969) with a list that is sorted anew at every deal.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{GpuTypeId, JobId};

use super::cores::{Demand, Demands};
use super::order::Ask;
use super::rules::DealingRules;
use super::sizes::Sizes;
use crate::what_if::FreeResources;

/// What a job would get, and how much that is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wish {
    pub(super) score: f64,
    pub(super) job: JobId,
    pub(super) kind: GpuTypeId,
    /// GPUs that it must have been given before; 0 for all but elastic jobs.
    pub(super) after: u32,
    /// GPUs that it would have then.
    pub(super) num_gpus: u32,
    /// What each of them comes with.
    pub(super) demand: Demand,
}

/// Every job on every type on which it can run, an elastic one size by size.
pub(super) fn asks(cluster: &Cluster, rules: &DealingRules, sizes: &Sizes, jobs: &[JobId]) -> Vec<Ask> {
    let mut asks = Vec::with_capacity(jobs.len() * cluster.num_types());
    for job in jobs {
        for kind in cluster.types_in(cluster.job(*job).types) {
            let ask = |step| Ask {
                job: *job,
                kind,
                step,
            };
            match sizes.steps(cluster, rules, *job, kind) {
                None => asks.push(ask(None)),
                Some(steps) => asks.extend(steps.into_iter().map(|step| ask(Some(step)))),
            }
        }
    }
    asks
}

/// All that may be dealt with its score, best first; equals by arrival, type and size.
pub(super) fn wishes(
    cluster: &Cluster,
    rules: &DealingRules,
    demands: &mut Demands,
    asks: &[Ask],
    scores: &[f64],
) -> Vec<Wish> {
    let mut wishes: Vec<Wish> = Vec::with_capacity(asks.len());
    for (ask, score) in asks.iter().zip(scores) {
        let (job, kind) = (ask.job, ask.kind);
        let before = wishes.last().filter(|_| !ask.is_first());
        // A step never comes before the one that it builds on.
        let (score, demand) = match before {
            Some(before) => (before.score.min(*score), before.demand),
            None => (*score, demands.of(cluster, rules, job, kind)),
        };
        let (after, num_gpus) = match ask.step {
            Some(step) => (step.after, step.num_gpus),
            None => (0, cluster.job(job).request.num_gpus),
        };
        wishes.push(Wish {
            score,
            job,
            kind,
            after,
            num_gpus,
            demand,
        });
    }
    // A job that scores nothing at all is not dealt GPUs, even if they stay free.
    wishes.retain(|wish| wish.score > f64::NEG_INFINITY);
    wishes.sort_unstable_by(|a, b| {
        let place = |wish: &Wish| (wish.job, wish.kind, wish.num_gpus);
        b.score.total_cmp(&a.score).then(place(a).cmp(&place(b)))
    });
    wishes
}

/// What is left to be given out.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// GPUs of each type. `[type]`
    gpus: Vec<u32>,
    /// Thousandths of GPUs of each tenant's quota; no limit where borrowing is allowed. `[tenant]`
    quota_milli: Vec<u64>,
}

impl Room {
    /// What would be left if these running jobs were stopped; `free` are the GPUs that would be free.
    pub(super) fn of(cluster: &Cluster, free: &FreeResources, stopped: &[JobId]) -> Room {
        let mut gpus = vec![0; cluster.num_types()];
        for node in free.nodes() {
            gpus[node.gpu_type.index()] += node.num_free();
        }
        let mut quota_milli = vec![u64::MAX; cluster.tenants().len()];
        if !cluster.borrowing() {
            let mut used: Vec<u64> = cluster.tenants().iter().map(|tenant| tenant.used_milli).collect();
            for id in stopped {
                let job = cluster.job(*id);
                used[job.request.tenant.index()] -= job.milli_held();
            }
            for ((left, tenant), used) in quota_milli.iter_mut().zip(cluster.tenants()).zip(used) {
                *left = (u64::from(tenant.quota_gpus) * 1000).saturating_sub(used);
            }
        }
        Room { gpus, quota_milli }
    }

    /// Takes so many GPUs of a job's tenant's quota, if there are enough.
    pub(super) fn take_quota(&mut self, cluster: &Cluster, id: JobId, num_gpus: u32) -> bool {
        let left = &mut self.quota_milli[cluster.job(id).request.tenant.index()];
        let milli = u64::from(num_gpus) * 1000;
        let fits = *left >= milli;
        if fits && *left != u64::MAX {
            *left -= milli;
        }
        fits
    }

    /// Takes a wish's GPUs, if there are enough.
    fn take(&mut self, cluster: &Cluster, wish: &Wish) -> bool {
        let num_gpus = wish.num_gpus - wish.after;
        if self.gpus[wish.kind.index()] < num_gpus || !self.take_quota(cluster, wish.job, num_gpus) {
            return false;
        }
        self.gpus[wish.kind.index()] -= num_gpus;
        true
    }

    /// Gives the GPUs of a winner back.
    pub(super) fn give_back(&mut self, cluster: &Cluster, winner: &Wish) {
        self.gpus[winner.kind.index()] += winner.num_gpus;
        let left = &mut self.quota_milli[cluster.job(winner.job).request.tenant.index()];
        if *left != u64::MAX {
            *left += u64::from(winner.num_gpus) * 1000;
        }
    }

    fn is_empty(&self) -> bool {
        self.gpus.iter().all(|num| *num == 0)
    }
}

/// Deals GPUs along the wishes; a winner has all GPUs that it was given, from none. `is_out` marks jobs whose turn is over, and
/// the winners are marked in it. `[job]`
pub(super) fn count(cluster: &Cluster, wishes: &[Wish], room: &mut Room, is_out: &mut [bool]) -> Vec<Wish> {
    let mut winners: Vec<Wish> = Vec::new();
    // Where they stand among them, for those that take further steps.
    let mut places: BTreeMap<JobId, usize> = BTreeMap::new();
    for wish in wishes {
        if room.is_empty() {
            break;
        }
        if wish.after > 0 {
            let winner = places.get(&wish.job).map(|at| &mut winners[*at]);
            if let Some(winner) = winner
                && (winner.kind, winner.num_gpus) == (wish.kind, wish.after)
                && room.take(cluster, wish)
            {
                winner.num_gpus = wish.num_gpus;
            }
            continue;
        }
        let out = &mut is_out[wish.job.index()];
        if !*out && room.take(cluster, wish) {
            *out = true;
            places.insert(wish.job, winners.len());
            winners.push(*wish);
        }
    }
    winners
}
