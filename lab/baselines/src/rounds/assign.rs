//! Leases on a cluster as it is: quotas bind, nodes drain, jobs ask for CPU and memory, and running jobs may have to stay.
//!
//! A lease takes GPUs of its type by number, within its tenant's quota. Then the gangs are placed, larger ones first: on the
//! GPUs that they have where these are not taken, else as tightly as possible. A gang that finds no place (its GPUs lie where
//! there is no CPU for them) gives its lease up, and jobs that still fit anywhere take what is left.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, NodeState, Placement, Shape, Slice};
use pleach_scheduler::{ActionKind, GpuTypeId, JobId};

use super::mechanism::{JobCombination, Lease};
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// What is left while leases are allocated.
#[derive(Clone, Debug)]
pub(super) struct Left {
    /// GPUs of each type. `[type]`
    gpus: Vec<u32>,
    /// GPUs of each tenant's quota in thousandths; no limit where borrowing is allowed. `[tenant]`
    quota_milli: Vec<u64>,
}

impl Left {
    /// Everything but what fractions hold and, where running jobs cannot be stopped, what they hold.
    pub(super) fn of(cluster: &Cluster, free: &FreeResources) -> Left {
        let types = 0..cluster.num_types();
        let gpus = types.map(|kind| free.num_free_of(GpuTypeId(kind as u8)));
        let mut quota_milli = vec![u64::MAX; cluster.tenants().len()];
        if !cluster.borrowing() {
            for (left, tenant) in quota_milli.iter_mut().zip(cluster.tenants()) {
                *left = u64::from(tenant.quota_gpus) * 1000;
            }
            for id in cluster.running().filter(|id| stays(cluster, *id)) {
                let job = cluster.job(id);
                let left = &mut quota_milli[job.request.tenant.index()];
                *left = left.saturating_sub(job.milli_held());
            }
        }
        Left {
            gpus: gpus.collect(),
            quota_milli,
        }
    }

    /// Takes a combination's GPUs of a type, if they and its tenants' quotas are there.
    pub(super) fn take(
        &mut self,
        cluster: &Cluster,
        combination: JobCombination,
        gpu_type: GpuTypeId,
    ) -> bool {
        let num_gpus = cluster.job(combination.job).request.num_gpus;
        if num_gpus > self.gpus[gpu_type.index()] {
            return false;
        }
        let milli = u64::from(num_gpus) * 1000;
        let tenant = |job: JobId| cluster.job(job).request.tenant.index();
        let taken: Vec<usize> = combination.jobs().map(tenant).collect();
        for (number, tenant) in taken.iter().enumerate() {
            match self.quota_milli[*tenant].checked_sub(milli) {
                Some(_) if cluster.borrowing() => {}
                Some(left) => self.quota_milli[*tenant] = left,
                None => {
                    for tenant in &taken[..number] {
                        self.quota_milli[*tenant] += milli;
                    }
                    return false;
                }
            }
        }
        self.gpus[gpu_type.index()] -= num_gpus;
        true
    }

    /// Gives back what a lease took.
    fn give_back(&mut self, cluster: &Cluster, lease: &Lease) {
        let num_gpus = cluster.job(lease.combination.job).request.num_gpus;
        self.gpus[lease.gpu_type.index()] += num_gpus;
        for job in lease.combination.jobs().filter(|_| !cluster.borrowing()) {
            let tenant = cluster.job(job).request.tenant.index();
            self.quota_milli[tenant] += u64::from(num_gpus) * 1000;
        }
    }
}

/// Whether a running job keeps its GPUs whatever a round says: nothing can be stopped, it holds a fraction, or its node
/// drains.
fn stays(cluster: &Cluster, id: JobId) -> bool {
    let job = cluster.job(id);
    let is_up = |slice: &Slice| cluster.nodes()[slice.node.index()].state == NodeState::Up;
    !cluster.capabilities().can(ActionKind::Preempt)
        || !is_whole_gpu_job(job)
        || !job.placement.iter().all(is_up)
}

fn gpus_of(placement: &[Slice]) -> u32 {
    placement.iter().map(|slice| slice.num_gpus()).sum()
}

/// Whether a round has a say in a job: it asks for whole GPUs, and waits or can be stopped.
pub(super) fn takes_part(cluster: &Cluster, id: JobId) -> bool {
    let job = cluster.job(id);
    match job.state {
        JobState::Pending => is_whole_gpu_job(job),
        JobState::Running => !stays(cluster, id),
        JobState::Held | JobState::Finished => false,
    }
}

/// What a round may give out: all but the GPUs of jobs that stay.
pub(super) fn what_if(cluster: &Cluster) -> FreeResources {
    FreeResources::without(cluster, cluster.running().filter(|id| !stays(cluster, *id)))
}

/// What the GPUs of a combination come with: what one of it asks for. Only jobs that ask for nothing but GPUs share them.
fn shape(cluster: &Cluster, combination: JobCombination) -> Shape {
    cluster.shape(cluster.job(combination.job).shape)
}

/// The GPUs of every lease that finds some, and of the jobs of `others` that fit into what they leave: in their order, each on
/// the first of `types` that has room.
pub(super) fn assign(
    cluster: &Cluster,
    (mut free, mut left): (FreeResources, Left),
    leases: &[Lease],
    types: &[GpuTypeId],
    others: impl Iterator<Item = JobId>,
) -> BTreeMap<JobCombination, Placement> {
    let size = |combination: JobCombination| cluster.job(combination.job).request.num_gpus;
    let mut order: Vec<Lease> = leases.to_vec();
    order.sort_by_key(|lease| std::cmp::Reverse(size(lease.combination)));
    let mut placements = BTreeMap::new();
    for gangs in order.chunk_by(|a, b| size(a.combination) == size(b.combination)) {
        let mut moved = Vec::new();
        for lease in gangs {
            let of_type = |slice: &Slice| cluster.nodes()[slice.node.index()].gpu_type == lease.gpu_type;
            let shape = shape(cluster, lease.combination);
            let keeps = |placement: &&Placement| {
                !placement.is_empty()
                    && placement.iter().all(of_type)
                    && gpus_of(placement) == size(lease.combination)
                    && free.has(placement, shape)
            };
            let kept = lease
                .combination
                .jobs()
                .map(|job| &cluster.job(job).placement)
                .find(keeps);
            match kept {
                Some(placement) => {
                    free.take(placement, shape);
                    placements.insert(lease.combination, placement.clone());
                }
                None => moved.push(*lease),
            }
        }
        for lease in moved {
            let shape = shape(cluster, lease.combination);
            match free.tightest(lease.gpu_type, size(lease.combination), shape) {
                Some(placement) => {
                    free.take(&placement, shape);
                    placements.insert(lease.combination, placement);
                }
                None => left.give_back(cluster, &lease),
            }
        }
    }
    if left.gpus.iter().all(|gpus| *gpus == 0) {
        return placements;
    }
    let placed: std::collections::BTreeSet<JobId> = placements
        .keys()
        .flat_map(|combination| combination.jobs())
        .collect();
    for id in others.filter(|id| !placed.contains(id)) {
        let combination = JobCombination::alone(id);
        let can_run = cluster.job(id).types;
        for gpu_type in types.iter().filter(|kind| can_run >> kind.0 & 1 == 1) {
            if left.gpus[gpu_type.index()] < size(combination) {
                continue;
            }
            let shape = shape(cluster, combination);
            if let Some(placement) = free.tightest(*gpu_type, size(combination), shape)
                && left.take(cluster, combination, *gpu_type)
            {
                free.take(&placement, shape);
                placements.insert(combination, placement);
                break;
            }
        }
    }
    placements
}

/// Puts the placements into effect: stops the jobs that lost their GPUs or move, then starts those that have none yet. Where the
/// cluster does not allow a pair to share, one of the two waits.
pub(super) fn carry_out(cluster: &mut Cluster, placements: &BTreeMap<JobCombination, Placement>) {
    let placement_of: BTreeMap<JobId, &Placement> = placements
        .iter()
        .flat_map(|(combination, placement)| combination.jobs().map(move |job| (job, placement)))
        .collect();
    let mut stopped: Vec<JobId> = cluster
        .running()
        .filter(|id| !stays(cluster, *id))
        .filter(|id| placement_of.get(id).copied() != Some(&cluster.job(*id).placement))
        .collect();
    stopped.sort_unstable();
    for id in stopped {
        cluster.preempt(id);
    }
    for (combination, placement) in placements {
        for id in combination.jobs() {
            if cluster.job(id).state != JobState::Pending || !cluster.has_room(cluster.demand(id)) {
                continue;
            }
            let runs = |other: &JobId| *other != id && cluster.job(*other).state == JobState::Running;
            if combination
                .jobs()
                .find(runs)
                .is_none_or(|other| cluster.can_pack(id, other))
            {
                cluster.start(id, placement.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::{RoundPlanner, RoundRules, Targets};
    use crate::test_clusters::submit_for;
    use crate::test_clusters::{preemptive_cluster, running, submit};
    use pleach_scheduler::cluster::{Capabilities, Sharing};
    use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, TenantSpec};
    use pleach_scheduler::{NodeId, Planner};

    /// Plans once with the same target for every combination.
    fn plan(cluster: &mut Cluster, combinations: &[JobCombination]) {
        let due: Targets = combinations
            .iter()
            .map(|combination| (*combination, vec![1.0]))
            .collect();
        let mut planner = RoundPlanner::new("all", RoundRules::GAVEL, move |_: &Cluster| Ok(due.clone()));
        planner.plan(cluster).unwrap();
        cluster.check();
    }

    fn alone(jobs: std::ops::Range<u32>) -> Vec<JobCombination> {
        jobs.map(|job| JobCombination::alone(JobId(job))).collect()
    }

    fn cluster_with(spec: &ClusterSpec, sharing: Sharing) -> Cluster {
        let capabilities = Capabilities {
            sharing,
            ..Capabilities::DEFAULT.with(ActionKind::Preempt)
        };
        Cluster::new(spec, &[ModelClass::default()], capabilities).unwrap()
    }

    #[test]
    fn a_tenant_behind_a_wall_runs_no_more_than_its_quota() {
        // 4 GPUs; tenant 0 may have 1, tenant 1 has 3. Three jobs of tenant 0 and one of tenant 1.
        let tenant = |quota_gpus: u32| TenantSpec {
            name: format!("tenant{quota_gpus}"),
            quota_gpus,
        };
        let spec = ClusterSpec {
            tenants: vec![tenant(1), tenant(3)],
            borrowing: false,
            ..ClusterSpec::uniform(1, 4, 1)
        };
        let mut cluster = cluster_with(&spec, Sharing::Off);
        for owner in [0, 0, 0, 1] {
            submit_for(&mut cluster, owner, 1, 1e3);
        }
        plan(&mut cluster, &alone(0..4));
        assert_eq!(running(&cluster), [0, 3]);
    }

    #[test]
    fn a_job_on_a_node_that_drains_stays_and_nobody_joins_it_there() {
        let mut cluster = preemptive_cluster(2, 1);
        submit(&mut cluster, 1, 1e3);
        plan(&mut cluster, &alone(0..1));
        let placement = cluster.job(JobId(0)).placement.clone();
        cluster.set_node_state(placement[0].node, NodeState::Draining, &mut Vec::new());
        submit(&mut cluster, 1, 1e3);
        submit(&mut cluster, 1, 1e3);
        plan(&mut cluster, &alone(0..3));
        assert_eq!(cluster.job(JobId(0)).placement, placement);
        assert_eq!(running(&cluster), [0, 1]);
        assert_eq!(
            cluster.job(JobId(1)).placement[0].node,
            NodeId(1 - placement[0].node.0)
        );
    }

    #[test]
    fn a_pair_sits_on_the_same_gpus_and_a_job_keeps_its_seat_when_its_company_leaves() {
        let mut cluster = cluster_with(&ClusterSpec::uniform(1, 2, 1), Sharing::Mps);
        for _ in 0..3 {
            submit(&mut cluster, 2, 1e3);
        }
        let pair = |a: u32, b: u32| JobCombination::pair(JobId(a), JobId(b));
        plan(&mut cluster, &[pair(0, 1)]);
        assert_eq!(running(&cluster), [0, 1]);
        assert_eq!(cluster.job(JobId(0)).placement, cluster.job(JobId(1)).placement);
        cluster.advance(pleach_scheduler::Time::from_secs_f64(360.0));
        plan(&mut cluster, &[pair(1, 2)]);
        assert_eq!(running(&cluster), [1, 2]);
        assert_eq!(cluster.job(JobId(1)).num_preemptions, 0);
    }

    #[test]
    fn where_nothing_can_be_stopped_running_jobs_keep_their_seats() {
        let mut cluster = Cluster::new(
            &ClusterSpec::uniform(1, 2, 1),
            &[ModelClass::default()],
            Capabilities::DEFAULT,
        )
        .unwrap();
        for _ in 0..3 {
            submit(&mut cluster, 1, 1e3);
        }
        plan(&mut cluster, &alone(1..2));
        assert_eq!(
            running(&cluster),
            [0, 1],
            "what is left over goes to who came first"
        );
        plan(&mut cluster, &alone(2..3));
        assert_eq!(running(&cluster), [0, 1]);
    }
}
