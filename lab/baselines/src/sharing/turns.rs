//! Turns that are over: the groups that have to make room for waiting jobs.

use pleach_scheduler::cluster::{Cluster, Placement};
use pleach_scheduler::{GpuTypeId, JobId, Time};

use crate::shared::what_if::is_whole_gpu_job;

/// A running job, or two on the same GPUs; they come and go together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunningGroup {
    pub(super) jobs: Vec<JobId>,
    kind: GpuTypeId,
    placement: Placement,
    /// When the last of them was started.
    start: Time,
}

/// The groups of whole-GPU jobs.
pub(super) fn groups(cluster: &Cluster) -> Vec<RunningGroup> {
    let mut running: Vec<JobId> = cluster
        .running()
        .filter(|id| is_whole_gpu_job(cluster.job(*id)))
        .collect();
    let first = |id: &JobId| {
        cluster
            .job(*id)
            .placement
            .first()
            .map(|slice| (slice.node, slice.gpus))
    };
    running.sort_unstable_by_key(|id| (first(id).map(|(node, gpus)| (node, gpus.trailing_zeros())), *id));
    let mut groups: Vec<RunningGroup> = Vec::new();
    for id in running {
        let job = cluster.job(id);
        match groups.last_mut() {
            Some(last) if job.is_sharing && last.placement == job.placement => {
                last.jobs.push(id);
                last.start = last.start.max(job.run_start);
            }
            _ => groups.push(RunningGroup {
                jobs: vec![id],
                kind: job.gpu_type,
                placement: job.placement.clone(),
                start: job.run_start,
            }),
        }
    }
    groups
}

/// The groups that have to stop so that the waiting jobs, in this order, get their gangs: first those that have run longest.
/// No group stops before it has had a whole turn, and none stops in vain: GPUs are counted, not placed, so fragments and other
/// resources may still keep a gang waiting.
pub(super) fn take_turns(cluster: &Cluster, waiting: &[JobId], turn: Time) -> Vec<RunningGroup> {
    let mut stoppable: Vec<RunningGroup> = groups(cluster)
        .into_iter()
        .filter(|group| cluster.now() >= group.start + turn)
        .collect();
    // From the end: the group that has run longest.
    stoppable.sort_by_key(|group| std::cmp::Reverse((group.start, group.jobs[0])));
    let num_gpus =
        |group: &RunningGroup| -> u32 { group.placement.iter().map(|slice| slice.num_gpus()).sum() };
    let num_types = cluster.num_types();
    let mut free: Vec<u32> = (0..num_types)
        .map(|kind| cluster.num_free_of(GpuTypeId(kind as u8)))
        .collect();
    let mut quota: Vec<u64> = cluster
        .tenants()
        .iter()
        .map(|tenant| match cluster.borrowing() {
            true => u64::MAX,
            false => (u64::from(tenant.quota_gpus) * 1000).saturating_sub(tenant.used_milli),
        })
        .collect();
    let mut stopped: Vec<RunningGroup> = Vec::new();
    for id in waiting {
        let (job, tenant) = (cluster.job(*id), cluster.job(*id).request.tenant.index());
        let (gang, milli) = (job.request.num_gpus, u64::from(job.request.num_gpus) * 1000);
        let found = cluster.types_in(job.types).find_map(|kind| {
            // Groups to stop, from those that have run longest, until GPUs and quota suffice.
            let (mut has, mut may, mut chosen) = (free[kind.index()], quota[tenant], Vec::new());
            for (at, group) in stoppable.iter().enumerate().rev() {
                if has >= gang && may >= milli {
                    break;
                }
                let own = group
                    .jobs
                    .iter()
                    .filter(|id| cluster.job(**id).request.tenant.index() == tenant);
                let own_milli: u64 = own.map(|id| cluster.job(*id).milli_held()).sum();
                let helps = (has < gang && group.kind == kind) || (may < milli && own_milli > 0);
                if helps {
                    if group.kind == kind {
                        has += num_gpus(group);
                    }
                    may = may.saturating_add(own_milli);
                    chosen.push(at);
                }
            }
            (has >= gang && may >= milli).then_some((kind, chosen))
        });
        let Some((kind, chosen)) = found else {
            continue;
        };
        for at in chosen {
            // Positions fall, so those that are left stay where they are.
            let group = stoppable.remove(at);
            free[group.kind.index()] += num_gpus(&group);
            for id in &group.jobs {
                let job = cluster.job(*id);
                let quota = &mut quota[job.request.tenant.index()];
                *quota = quota.saturating_add(job.milli_held());
            }
            stopped.push(group);
        }
        free[kind.index()] -= gang;
        quota[tenant] = quota[tenant].saturating_sub(milli);
    }
    stopped
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cluster, start_on};
    use super::*;
    use crate::test_clusters::submit;

    fn stopped(cluster: &Cluster, waiting: &[JobId]) -> Vec<Vec<u32>> {
        let groups = take_turns(cluster, waiting, Time::from_secs_f64(60.0));
        let ids = |group: RunningGroup| group.jobs.iter().map(|id| id.0).collect();
        groups.into_iter().map(ids).collect()
    }

    #[test]
    fn who_has_run_longest_stops_first_and_pairs_stop_together() {
        let mut cluster = cluster(1, 4, 1.1);
        // At 0 s: a pair on GPU 0; at 10 s: jobs on GPUs 1 and 2; at 50 s: a job on GPU 3.
        for (now_s, gpus) in [
            (0.0, 0b1),
            (0.0, 0b1),
            (10.0, 0b10),
            (10.0, 0b100),
            (50.0, 0b1000),
        ] {
            cluster.advance(Time::from_secs_f64(now_s));
            let id = submit(&mut cluster, 1, 1e3);
            start_on(&mut cluster, id, gpus);
        }
        let [one, two, three] = [1, 2, 3].map(|num_gpus| submit(&mut cluster, num_gpus, 1e3));
        let mut at = |now_s: f64, waiting: &[JobId]| {
            cluster.advance(Time::from_secs_f64(now_s));
            stopped(&cluster, waiting)
        };
        assert_eq!(at(59.0, &[one]), [[0; 0]; 0], "nobody had a whole turn");
        assert_eq!(at(60.0, &[one]), [[0, 1]]);
        assert_eq!(
            at(69.0, &[two]),
            [[0; 0]; 0],
            "one GPU is not enough, so nobody stops"
        );
        assert_eq!(at(70.0, &[two]), [vec![0, 1], vec![2]]);
        assert_eq!(at(70.0, &[two, one, three]), [vec![0, 1], vec![2], vec![3]]);
        assert_eq!(at(110.0, &[three, one]).len(), 4);
    }
}
