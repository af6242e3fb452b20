//! Who gets GPUs of which type, by number alone: greedily by score, and who does not fit is passed over.
//!
//! This is list scheduling (Graham, SIAM J. Appl. Math. 1969) with a list that is sorted anew at every deal.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{GpuTypeId, JobId};

use super::order::Order;
use crate::shared::what_if::FreeResources;

/// What a job would get, and how much that is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wish {
    pub(super) score: f64,
    pub(super) job: JobId,
    pub(super) kind: GpuTypeId,
}

/// Every job on every type on which it can run, best first; equals by arrival, then by type.
pub(super) fn wishes(cluster: &Cluster, order: &dyn Order, jobs: &[JobId]) -> Vec<Wish> {
    let mut wishes = Vec::with_capacity(jobs.len() * cluster.num_types());
    for id in jobs {
        let of_job = order.of_job(cluster, *id);
        for kind in cluster.types_in(cluster.job(*id).types) {
            wishes.push(Wish {
                score: of_job + order.of_type(cluster, *id, kind),
                job: *id,
                kind,
            });
        }
    }
    wishes.sort_unstable_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then((a.job, a.kind).cmp(&(b.job, b.kind)))
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

    /// Takes a gang's part of its tenant's quota, if there is enough.
    pub(super) fn take_quota(&mut self, cluster: &Cluster, id: JobId) -> bool {
        let request = &cluster.job(id).request;
        let left = &mut self.quota_milli[request.tenant.index()];
        let milli = u64::from(request.num_gpus) * 1000;
        let fits = *left >= milli;
        if fits && *left != u64::MAX {
            *left -= milli;
        }
        fits
    }

    /// Takes a wish's GPUs, if there are enough.
    fn take(&mut self, cluster: &Cluster, wish: &Wish) -> bool {
        let num_gpus = cluster.job(wish.job).request.num_gpus;
        if self.gpus[wish.kind.index()] < num_gpus || !self.take_quota(cluster, wish.job) {
            return false;
        }
        self.gpus[wish.kind.index()] -= num_gpus;
        true
    }

    /// Gives the GPUs of a wish back.
    pub(super) fn give_back(&mut self, cluster: &Cluster, wish: &Wish) {
        let request = &cluster.job(wish.job).request;
        self.gpus[wish.kind.index()] += request.num_gpus;
        let left = &mut self.quota_milli[request.tenant.index()];
        if *left != u64::MAX {
            *left += u64::from(request.num_gpus) * 1000;
        }
    }

    fn is_empty(&self) -> bool {
        self.gpus.iter().all(|num| *num == 0)
    }
}

/// Deals GPUs along the wishes. `is_out` says whose turn is over, by job, and is told of the winners. `[job]`
pub(super) fn count(cluster: &Cluster, wishes: &[Wish], room: &mut Room, is_out: &mut [bool]) -> Vec<Wish> {
    let mut winners = Vec::new();
    for wish in wishes {
        if room.is_empty() {
            break;
        }
        let out = &mut is_out[wish.job.index()];
        if !*out && room.take(cluster, wish) {
            *out = true;
            winners.push(*wish);
        }
    }
    winners
}
