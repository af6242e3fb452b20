//! Allocates the GPUs anew along a priority order, and stops and starts what that changes.
//!
//! First GPUs are only counted: along the order each job takes its gang from what is left, those that do not fit are passed
//! over, and a running job that finds its GPUs counted away is stopped. Then the winners that do not run yet are placed, in
//! the same order, by the cluster's own placement: it knows CPU, memory, fractions and draining nodes, so a winner may
//! still find no place and wait. Running winners are never moved. Where that would leave the cluster idle, every job that has
//! a place is started, accepted or not.

pub(crate) use pleach_dealing::starts::{start_what_fits, tightest};
use pleach_scheduler::cluster::{Cluster, JobState, Slice};
use pleach_scheduler::{ActionKind, GpuTypeId, JobId};

/// What an allocation may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Jobs behind one that does not fit may take what is left.
    pub skip: bool,
    /// Running jobs may be stopped. Where not, they keep their GPUs whatever the order says.
    pub preempt: bool,
}

/// Room that is left while GPUs are counted out.
#[derive(Clone, Debug)]
struct Left {
    /// Thousandths of GPUs of each type. `[type]`
    milli: Vec<u64>,
    /// Thousandths of GPUs of each tenant's quota; no limit where borrowing is allowed. `[tenant]`
    quota_milli: Vec<u64>,
}

impl Left {
    /// What is left if every running job that is not kept is stopped.
    fn of(cluster: &Cluster, keeps: impl Fn(JobId) -> bool) -> Left {
        let mut milli = vec![0_u64; cluster.num_types()];
        for kind in 0..cluster.num_types() {
            let kind = GpuTypeId(kind as u8);
            milli[kind.index()] = u64::from(cluster.num_free_of(kind)) * 1000;
        }
        for (_, gpu) in cluster.shared_gpus() {
            let kind = cluster.nodes()[gpu.node.index()].gpu_type;
            milli[kind.index()] += u64::from(gpu.milli_left());
        }
        let mut quota_milli = vec![u64::MAX; cluster.tenants().len()];
        if !cluster.borrowing() {
            for (left, tenant) in quota_milli.iter_mut().zip(cluster.tenants()) {
                *left = (u64::from(tenant.quota_gpus) * 1000).saturating_sub(tenant.used_milli);
            }
        }
        let mut left = Left { milli, quota_milli };
        for id in cluster.running().filter(|id| !keeps(*id)) {
            let job = cluster.job(id);
            left.milli[job.gpu_type.index()] += job.milli_held();
            let quota = &mut left.quota_milli[job.request.tenant.index()];
            *quota = quota.saturating_add(job.milli_held());
        }
        left
    }

    /// Takes a gang on one of the types, if it fits: on the type where it runs, else on the fastest.
    fn take(&mut self, cluster: &Cluster, id: JobId) -> bool {
        let job = cluster.job(id);
        let milli = u64::from(job.request.num_gpus) * u64::from(job.request.resources.gpu_milli);
        let tenant = job.request.tenant.index();
        if self.quota_milli[tenant] < milli {
            return false;
        }
        let speed = &cluster.class(job.request.class).speed;
        let kind = if job.state == JobState::Running {
            Some(job.gpu_type).filter(|kind| self.milli[kind.index()] >= milli)
        } else {
            let fitting = cluster
                .types_in(job.types)
                .filter(|kind| self.milli[kind.index()] >= milli);
            // Of equally fast types the first.
            fitting.reduce(|best, kind| {
                if speed[kind.index()] > speed[best.index()] {
                    kind
                } else {
                    best
                }
            })
        };
        let Some(kind) = kind else {
            return false;
        };
        self.milli[kind.index()] -= milli;
        self.quota_milli[tenant] = self.quota_milli[tenant].saturating_sub(milli);
        true
    }
}

/// Allocates the GPUs along an order of all jobs that wait or run; a running job that the order leaves out is stopped where
/// that is allowed. `accept` may refuse a placement, for example one that is too spread out; the job then waits. Returns
/// the number of jobs started.
pub fn allocate_by_priority(
    cluster: &mut Cluster,
    order: &[JobId],
    rules: Rules,
    mut accept: impl FnMut(&Cluster, JobId, &[Slice]) -> bool,
) -> usize {
    let preempt = rules.preempt && cluster.capabilities().can(ActionKind::Preempt);
    let mut left = Left::of(cluster, |_| !preempt);
    let (mut winners, mut kept) = (Vec::new(), Vec::new());
    for &id in order {
        let runs = cluster.job(id).state == JobState::Running;
        if runs && !preempt {
            continue;
        }
        if left.take(cluster, id) {
            if runs {
                kept.push(id);
            } else {
                winners.push(id);
            }
        } else if !rules.skip {
            break;
        }
    }
    if preempt {
        kept.sort_unstable();
        let mut stopped: Vec<JobId> = cluster
            .running()
            .filter(|id| kept.binary_search(id).is_err())
            .collect();
        stopped.sort_unstable();
        for id in stopped {
            cluster.preempt(id);
        }
    }
    let mut num_started = 0;
    let mut slices = Vec::new();
    for id in winners {
        if let Some(placement) = tightest(cluster, id, &mut slices)
            && accept(cluster, id, &placement)
        {
            cluster.start(id, placement);
            num_started += 1;
        } else if !rules.skip {
            break;
        }
    }
    if num_started == 0 && cluster.num_running() == 0 {
        // The winners found no place (cores, memory, nodes that are away). An idle cluster must not stay so for their
        // sake.
        return start_what_fits(cluster, order);
    }
    num_started
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{multi_type_cluster, preemptive_cluster, running, submit};

    const ALL: Rules = Rules {
        skip: true,
        preempt: true,
    };

    fn allocate(cluster: &mut Cluster, order: &[u32], rules: Rules) -> Vec<u32> {
        let order: Vec<JobId> = order.iter().map(|id| JobId(*id)).collect();
        allocate_by_priority(cluster, &order, rules, |_, _, _| true);
        cluster.check();
        // What was decided is carried out: a later stop is one.
        cluster.take_decisions(&mut Vec::new());
        running(cluster)
    }

    #[test]
    fn the_order_decides_who_runs_and_who_is_stopped() {
        // 4 GPUs; jobs of 2, 2, 3, 1 GPUs.
        let mut cluster = preemptive_cluster(1, 4);
        for num_gpus in [2, 2, 3, 1] {
            submit(&mut cluster, num_gpus, 1e3);
        }
        assert_eq!(allocate(&mut cluster, &[0, 1, 2, 3], ALL), [0, 1]);
        // The gang of 3 comes first: one GPU is left, so both gangs of 2 are stopped and the job of 1 runs.
        assert_eq!(allocate(&mut cluster, &[2, 0, 1, 3], ALL), [2, 3]);
        assert_eq!(cluster.job(JobId(0)).num_preemptions, 1);
        // Nothing changes under the same order.
        assert_eq!(allocate(&mut cluster, &[2, 0, 1, 3], ALL), [2, 3]);
        assert_eq!(cluster.job(JobId(2)).num_preemptions, 0);
    }

    #[test]
    fn without_skipping_the_first_that_does_not_fit_ends_the_allocation() {
        let mut cluster = preemptive_cluster(1, 4);
        for num_gpus in [3, 2, 1] {
            submit(&mut cluster, num_gpus, 1e3);
        }
        let strict = Rules { skip: false, ..ALL };
        assert_eq!(allocate(&mut cluster, &[0, 1, 2], strict), [0]);
        assert_eq!(allocate(&mut cluster, &[0, 1, 2], ALL), [0, 2]);
    }

    #[test]
    fn where_running_jobs_stay_they_keep_their_gpus_whatever_the_order() {
        let mut cluster = preemptive_cluster(1, 4);
        for num_gpus in [3, 2, 1] {
            submit(&mut cluster, num_gpus, 1e3);
        }
        let stay = Rules {
            preempt: false,
            ..ALL
        };
        assert_eq!(allocate(&mut cluster, &[0, 1, 2], stay), [0, 2]);
        assert_eq!(allocate(&mut cluster, &[1, 2, 0], stay), [0, 2]);
    }

    #[test]
    fn an_idle_cluster_starts_whoever_has_a_place_where_those_counted_in_have_none() {
        // The gang of 4 takes all GPUs in the count and its placement is refused, so the job of 1 is counted out: without
        // the second look no job would run.
        let mut cluster = preemptive_cluster(1, 4);
        let (wide, small) = (submit(&mut cluster, 4, 1e3), submit(&mut cluster, 1, 1e3));
        let num_started = allocate_by_priority(&mut cluster, &[wide, small], ALL, |_, id, _| id != wide);
        assert_eq!((num_started, running(&cluster)), (1, vec![wide.0]));
        cluster.check();
    }

    #[test]
    fn gpus_are_counted_type_by_type_and_the_fastest_goes_first() {
        // Two GPUs of a slow and two of a fast type; three jobs of one GPU and one of two.
        let mut cluster = multi_type_cluster(&[1.0, 2.0], 2);
        for num_gpus in [1, 1, 2, 1] {
            submit(&mut cluster, num_gpus, 1e3);
        }
        assert_eq!(allocate(&mut cluster, &[0, 1, 2, 3], ALL), [0, 1, 2]);
        let kinds: Vec<u8> = [0, 1, 2].map(|id| cluster.job(JobId(id)).gpu_type.0).to_vec();
        assert_eq!(kinds, [1, 1, 0]);
    }
}
