//! What a planner wants to run where, and the change from what runs now.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, Placement, ShapeId};
use pleach_scheduler::physics::mixed::Copies;
use pleach_scheduler::{ActionKind, JobId};

use super::starts::start_what_fits;
use super::what_if::is_whole_gpu_job;

/// What one job gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// Its GPUs. An elastic job may get others than it asked for.
    pub placement: Placement,
    /// What each GPU comes with; none = as asked for.
    pub granted: Option<ShapeId>,
    /// Whether it runs as one copy on every slice.
    pub copies: Option<Copies>,
}

impl Grant {
    /// A gang with what it asked for.
    #[must_use]
    pub fn gang(placement: Placement) -> Grant {
        Grant {
            placement,
            granted: None,
            copies: None,
        }
    }
}

/// Which jobs run where until the next plan.
pub type Allocation = BTreeMap<JobId, Grant>;

/// Makes the cluster run an allocation: a running job with the same grant goes on untouched, every other running job is stopped,
/// and what is in the allocation and does not run is started, by id. Jobs that hold fractions are left alone, and where the
/// cluster cannot preempt so are all running jobs. Returns the number of jobs that were stopped.
///
/// # Panics
/// As [`Cluster::start_with`]: if the allocation gives a GPU away twice where the cluster cannot share.
pub fn apply(cluster: &mut Cluster, allocation: &Allocation) -> usize {
    change(cluster, allocation, true)
}

/// As [`apply`], but a job that moves is stopped and waits: for drivers that cannot stop a job and start it again at once.
/// Returns the number of jobs that were stopped.
///
/// # Panics
/// As [`apply`].
pub fn apply_stops_first(cluster: &mut Cluster, allocation: &Allocation) -> usize {
    change(cluster, allocation, false)
}

fn change(cluster: &mut Cluster, allocation: &Allocation, restarts: bool) -> usize {
    let keeps = |id: JobId| {
        let job = cluster.job(id);
        allocation.get(&id).is_some_and(|grant| {
            let granted = grant.granted.unwrap_or(job.shape);
            job.placement == grant.placement
                && job.granted == granted
                && job.is_forked == grant.copies.is_some()
        })
    };
    let mut stopped: Vec<JobId> = cluster
        .running()
        .filter(|id| {
            cluster.capabilities().can(ActionKind::Preempt)
                && is_whole_gpu_job(cluster.job(*id))
                && !keeps(*id)
        })
        .collect();
    stopped.sort_unstable();
    for id in &stopped {
        cluster.preempt(*id);
    }
    for (id, grant) in allocation {
        let waits_for_its_move = !restarts && stopped.binary_search(id).is_ok();
        if cluster.job(*id).state != JobState::Pending || waits_for_its_move {
            continue;
        }
        let granted = grant.granted.unwrap_or(cluster.job(*id).shape);
        match &grant.copies {
            Some(copies) => cluster.start_copies(*id, grant.placement.clone(), copies),
            None => cluster.start_with(*id, grant.placement.clone(), granted),
        }
    }
    stopped.len()
}

/// Starts pending jobs that ask for fractions, by arrival, where they fit: planners of whole GPUs leave them to this, before
/// they plan.
pub fn start_fractions(cluster: &mut Cluster) {
    let mut pending: Vec<JobId> = cluster
        .pending()
        .filter(|id| !is_whole_gpu_job(cluster.job(*id)))
        .collect();
    pending.sort_unstable();
    start_what_fits(cluster, &pending);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{preemptive_cluster, running, submit};
    use pleach_scheduler::NodeId;
    use pleach_scheduler::cluster::Slice;

    fn on(gpus: u64) -> Grant {
        Grant::gang(Placement::from_slice(&[Slice {
            node: NodeId(0),
            gpus,
        }]))
    }

    #[test]
    fn an_allocation_stops_what_moves_and_leaves_what_stays() {
        let mut cluster = preemptive_cluster(1, 4);
        for num_gpus in [1, 1, 2, 2] {
            submit(&mut cluster, num_gpus, 1e3);
        }
        let allocation = |grants: &[(u32, u64)]| -> Allocation {
            let grants = grants.iter().map(|(id, gpus)| (JobId(*id), on(*gpus)));
            grants.collect()
        };
        apply(&mut cluster, &allocation(&[(0, 0b1), (1, 0b10), (2, 0b1100)]));
        assert_eq!(running(&cluster), [0, 1, 2]);
        // Starts that were not carried out yet would only be taken back.
        cluster.take_decisions(&mut Vec::new());
        // Job 0 stays, job 1 moves, job 2 gives way to job 3.
        let num_stopped = apply(&mut cluster, &allocation(&[(0, 0b1), (1, 0b1000), (3, 0b110)]));
        cluster.check();
        assert_eq!((num_stopped, running(&cluster)), (2, vec![0, 1, 3]));
        let preemptions = [0, 1, 2].map(|id| cluster.job(JobId(id)).num_preemptions);
        assert_eq!(preemptions, [0, 1, 1]);
        cluster.take_decisions(&mut Vec::new());
        // Stops first: job 0 would move and waits for that; job 2, which did not run, starts.
        let num_stopped = apply_stops_first(&mut cluster, &allocation(&[(0, 0b10), (1, 0b1000), (2, 0b101)]));
        cluster.check();
        assert_eq!((num_stopped, running(&cluster)), (2, vec![1, 2]));
    }
}
