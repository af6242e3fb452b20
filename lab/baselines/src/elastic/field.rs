//! What an elastic plan is drawn up on: the jobs that it may move, the GPUs that they may have, and what each is given.
//!
//! Jobs stay out of the plan, and keep their GPUs, that hold fractions, run on a node that is not up, or run where nothing
//! can be stopped. Quotas without borrowing are kept here, so that no plan can exceed them.

use pleach_scheduler::cluster::{Cluster, JobState, NodeState, Placement};
use pleach_scheduler::{ActionKind, GpuTypeId, JobId};

use super::scaling::Scaling;
use crate::shared::allocation::{Allocation, Grant, apply, start_fractions};
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// A plan in the making.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// The jobs that the plan is about, by arrival.
    pub jobs: Vec<JobId>,
    /// Free GPUs.
    pub free: FreeResources,
    /// Which job runs where.
    pub allocation: Allocation,
    /// GPUs that each tenant may still take. `[tenant]`
    quota_left: Vec<u32>,
}

impl Field {
    /// The empty plan. Jobs that ask for fractions are started before it, where they fit; elastic ones that run choose their
    /// batch anew.
    pub fn open(cluster: &mut Cluster) -> Field {
        start_fractions(cluster);
        let preemption = cluster.capabilities().can(ActionKind::Preempt);
        let moves = |cluster: &Cluster, id: JobId| {
            let job = cluster.job(id);
            let is_up = |node: pleach_scheduler::NodeId| cluster.nodes()[node.index()].state == NodeState::Up;
            let stays = job.state == JobState::Running
                && (!preemption || job.is_sharing || !job.placement.iter().all(|slice| is_up(slice.node)));
            is_whole_gpu_job(job) && !stays
        };
        let active = cluster.active();
        for id in &active {
            cluster.retune(*id);
        }
        let (jobs, others): (Vec<JobId>, Vec<JobId>) = active.into_iter().partition(|id| moves(cluster, *id));
        let mut allocation = Allocation::new();
        for id in others {
            let job = cluster.job(id);
            if job.state == JobState::Running && is_whole_gpu_job(job) {
                allocation.insert(id, held(cluster, id));
            }
        }
        let movable = jobs.iter().copied();
        let stopped: Vec<JobId> = movable
            .filter(|id| cluster.job(*id).state == JobState::Running)
            .collect();
        let mut used_milli: Vec<u64> = cluster.tenants().iter().map(|tenant| tenant.used_milli).collect();
        for id in &stopped {
            let job = cluster.job(*id);
            used_milli[job.request.tenant.index()] -= job.milli_held();
        }
        let quota_left = cluster.tenants().iter().zip(used_milli).map(|(tenant, used)| {
            if cluster.borrowing() {
                return u32::MAX;
            }
            ((u64::from(tenant.quota_gpus) * 1000).saturating_sub(used) / 1000) as u32
        });
        Field {
            quota_left: quota_left.collect(),
            free: FreeResources::without(cluster, stopped),
            jobs,
            allocation,
        }
    }

    /// Free GPUs of each type. `[type]`
    pub fn capacity(&self, cluster: &Cluster) -> Vec<u32> {
        let kinds = (0..cluster.num_types()).map(|kind| GpuTypeId(kind as u8));
        kinds.map(|kind| self.free.num_free_of(kind)).collect()
    }

    /// GPUs that a tenant may still take.
    pub fn quota_left(&self, tenant: usize) -> u32 {
        self.quota_left[tenant]
    }

    /// Whether a job has its GPUs.
    pub fn has(&self, id: JobId) -> bool {
        self.allocation.contains_key(&id)
    }

    /// Lets a running job go on where it is, if its GPUs are free and its tenant may have them.
    pub fn keep(&mut self, cluster: &Cluster, job: &Scaling) -> bool {
        let Some((_, num_gpus)) = job.held else {
            return false;
        };
        let placement = &cluster.job(job.id).placement;
        let free = self
            .free
            .has(placement, cluster.shape(cluster.job(job.id).granted));
        if !free || self.quota_left[job.tenant] < num_gpus {
            return false;
        }
        self.take(cluster, job, held(cluster, job.id), num_gpus);
        true
    }

    /// Gives a job these GPUs, if they are free, it can run on them, and its tenant may have them.
    pub fn give(&mut self, cluster: &Cluster, job: &Scaling, placement: Placement) -> bool {
        let num_gpus = placement.iter().map(|slice| slice.num_gpus()).sum();
        if self.quota_left[job.tenant] < num_gpus
            || !self.free.has(&placement, job.shape)
            || cluster.job_facts(job.id, &placement).rate <= 0.0
        {
            return false;
        }
        self.take(cluster, job, Grant::gang(placement), num_gpus);
        true
    }

    fn take(&mut self, cluster: &Cluster, job: &Scaling, grant: Grant, num_gpus: u32) {
        let granted = grant.granted.unwrap_or(cluster.job(job.id).shape);
        self.free.take(&grant.placement, cluster.shape(granted));
        let left = &mut self.quota_left[job.tenant];
        // Without limit stays without limit.
        *left = if *left == u32::MAX {
            *left
        } else {
            *left - num_gpus
        };
        self.allocation.insert(job.id, grant);
    }

    /// Gives each job so many GPUs of a type: those that hold just that already go on, the others are placed tightly, the
    /// largest first, with as many as there is room and quota for. A rigid job gets its gang or nothing.
    pub fn place(&mut self, cluster: &Cluster, wants: &[(&Scaling, GpuTypeId, u32)]) {
        let mut rest = Vec::new();
        for (job, kind, num_gpus) in wants {
            if job.held != Some((*kind, *num_gpus)) || !self.keep(cluster, job) {
                rest.push((*job, *kind, *num_gpus));
            }
        }
        rest.sort_by_key(|(_, _, num_gpus)| std::cmp::Reverse(*num_gpus));
        for (job, kind, wanted) in rest {
            let mut num_gpus = wanted.min(self.quota_left[job.tenant]);
            while num_gpus >= job.least {
                let placement = self.free.tightest(kind, num_gpus, job.shape);
                if placement.is_some_and(|placement| self.give(cluster, job, placement)) {
                    break;
                }
                num_gpus -= 1;
            }
        }
    }

    /// Starts each job that got nothing on the fewest GPUs that it runs on, by arrival, wherever there is room: no job waits
    /// beside idle GPUs on which it could run. A running job that the plan left out goes on if its GPUs are left over.
    pub(crate) fn start_left_over(&mut self, cluster: &Cluster, scalings: &[Scaling]) {
        for job in scalings {
            if self.has(job.id) || self.keep(cluster, job) || self.quota_left[job.tenant] < job.least {
                continue;
            }
            for kind in job.types() {
                let placement = self.free.tightest(kind, job.least, job.shape);
                if placement.is_some_and(|placement| self.give(cluster, job, placement)) {
                    break;
                }
            }
        }
    }

    /// Carries the plan out.
    pub fn close(self, cluster: &mut Cluster) {
        apply(cluster, &self.allocation);
    }
}

/// What a running job has.
fn held(cluster: &Cluster, id: JobId) -> Grant {
    let job = cluster.job(id);
    Grant {
        placement: job.placement.clone(),
        granted: Some(job.granted),
        copies: None,
    }
}
