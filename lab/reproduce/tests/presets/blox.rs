//! Blox's simulator for jobs of one GPU: rounds of 300 s on a grid, running jobs keep their GPUs.
//!
//! A waiting job that finds no GPU takes one from the running job that is last in the order, if there is one behind it. A
//! job that lost its GPU may win another one later in the same round, from a job behind it.
//!
//! # Source
//! msr-fiddle/blox at c8851b2, `schedulers` and `placement/placement.py`, read for their behaviour.
//!
//! # What is deliberately not here
//! Gangs: at that commit a gang fits only where the free GPUs of the first nodes happen to be exactly as many as it wants.

use std::collections::BTreeMap;

use pleach_baselines::rounds::{JobCombination, apply_leases};
use pleach_env::world::{LeaseTerms, RoundClock, RoundEnd, Seen};
use pleach_scheduler::cluster::{Cluster, JobState, Placement, Slice};
use pleach_scheduler::{JobId, NodeId, Planner, PolicyError, Time};

use super::in_rounds::RoundPreset;

/// The clock.
pub const CLOCK: RoundClock = RoundClock {
    length: Time(300_000_000),
    end: RoundEnd::Grid,
    seen: Seen::AtLeaseEnd,
    step_s: None,
};

/// The order in which jobs are looked at; ties by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By arrival.
    Fifo,
    /// By attained time.
    Las,
    /// By remaining time.
    Srtf,
}

/// Blox's simulator as a planner.
#[derive(Clone, Copy, Debug)]
pub struct Blox {
    /// The order.
    pub order: Order,
}

/// The first free GPU, node by node; none if all are taken.
fn first_free(free: &[u64]) -> Option<Slice> {
    let node = free.iter().position(|mask| *mask != 0)?;
    Some(Slice {
        node: NodeId(node as u32),
        gpus: free[node] & free[node].wrapping_neg(),
    })
}

impl Planner for Blox {
    fn name(&self) -> &str {
        "blox"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let now = cluster.now();
        let key = |id: &JobId| {
            let job = cluster.job(*id);
            match self.order {
                Order::Fifo => job.submit.as_secs_f64(),
                Order::Las => job.attained_gpu_s_at(now),
                Order::Srtf => job.request.estimate_s.value - job.attained_gpu_s_at(now),
            }
        };
        let ids = (0..cluster.jobs().len()).map(|id| JobId(id as u32));
        let mut jobs: Vec<JobId> = ids
            .filter(|id| cluster.job(*id).state != JobState::Finished)
            .collect();
        jobs.sort_by(|a, b| key(a).total_cmp(&key(b)));
        let mut free: Vec<u64> = cluster.nodes().iter().map(|node| node.free).collect();
        let running = jobs
            .iter()
            .filter(|id| cluster.job(**id).state == JobState::Running);
        let mut running: BTreeMap<JobId, Slice> =
            running.map(|id| (*id, cluster.job(*id).placement[0])).collect();
        let mut launched: BTreeMap<JobId, Slice> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            if running.contains_key(job) {
                continue;
            }
            if first_free(&free).is_none()
                && let Some(slice) = jobs[index + 1..]
                    .iter()
                    .rev()
                    .find_map(|victim| running.remove(victim))
            {
                free[slice.node.index()] |= slice.gpus;
            }
            let Some(slice) = first_free(&free) else {
                break;
            };
            free[slice.node.index()] &= !slice.gpus;
            launched.insert(*job, slice);
        }
        running.append(&mut launched);
        let placed = running
            .into_iter()
            .map(|(job, slice)| (JobCombination::alone(job), Placement::from_slice(&[slice])));
        apply_leases(cluster, &placed.collect());
        Ok(())
    }
}

impl RoundPreset for Blox {
    fn terms(&self, _job: JobId) -> LeaseTerms {
        LeaseTerms::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::in_rounds::run;
    use super::super::test_workloads::{job, workload};
    use super::*;
    use pleach_scheduler::cluster_spec::ClusterSpec;

    #[test]
    fn a_waiting_job_takes_the_gpu_of_the_last_one_in_the_order() {
        // One GPU. Job 0 runs from 0 s; at 300 s job 1 has attained nothing and job 0 300 s: job 1 runs. At 600 s both have
        // attained 300 s, and a tie is for the earlier job, which takes the GPU back, and so on in turns: job 0 runs in
        // the rounds 1, 3, 5 and ends at 1,500 s, job 1 in 2, 4, 6 and ends at 1,800 s.
        let jobs = vec![job("a", 0.0, 1, 900.0), job("b", 10.0, 1, 900.0)];
        let finishes = |order| {
            let mut workload = workload(jobs.clone());
            workload.cluster = ClusterSpec::uniform(1, 1, 1);
            let result = run(&workload, CLOCK, &mut Blox { order }, &mut |_| {}).unwrap();
            result.jobs.iter().map(|job| job.finish_s).collect::<Vec<_>>()
        };
        assert_eq!(finishes(Order::Las), [1500.0, 1800.0]);
        assert_eq!(finishes(Order::Fifo), [900.0, 1800.0]);
        assert_eq!(finishes(Order::Srtf), [900.0, 1800.0]);
    }
}
