//! The orders in which Synergy looks at jobs; it comes on top of any.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{JobId, Time};
use serde::{Deserialize, Serialize};

/// The order in which jobs are looked at. Ties go to the job that came first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By arrival.
    #[default]
    Fifo,
    /// By remaining run time at the speed that the job would have.
    Srtf,
    /// By attained GPU time.
    Las,
    /// By finish-time fairness, the worst off first: the time in the system when a job will have run to its end, over what
    /// it would have taken alone (Themis, NSDI'20).
    Ftf,
    /// The same ratio, smallest first: what the released simulator does.
    FtfAscending,
}

impl Order {
    /// The jobs in this order; `speed` says how fast each would run.
    pub fn sorted(
        self,
        cluster: &Cluster,
        jobs: Vec<JobId>,
        mut speed: impl FnMut(JobId) -> f64,
    ) -> Vec<JobId> {
        let now = cluster.now();
        let mut key = |id: JobId| -> f64 {
            let job = cluster.job(id);
            let mut rest_s = || job.remaining_s_at(now) / speed(id);
            let ratio = |rest_s: f64| ((now - job.submit).as_secs_f64() + rest_s) / job.work_s();
            match self {
                Order::Fifo => 0.0,
                Order::Srtf => rest_s(),
                Order::Las => job.attained_gpu_s_at(now),
                Order::Ftf => -ratio(rest_s()),
                Order::FtfAscending => ratio(rest_s()),
            }
        };
        let mut keyed: Vec<(f64, Time, JobId)> = jobs
            .into_iter()
            .map(|id| (key(id), cluster.job(id).submit, id))
            .collect();
        keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        keyed.into_iter().map(|(.., id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{place, preemptive_cluster, submit};

    #[test]
    fn each_order_puts_another_job_first() {
        // Job 0 runs since 0 s on 3 GPUs and has 900 s of 1,000 s left at 100 s; job 1 (400 s) came at 0 s and waits; job 2
        // (50 s) comes at 100 s.
        let mut cluster = preemptive_cluster(1, 4);
        let first = submit(&mut cluster, 3, 1000.0);
        submit(&mut cluster, 2, 400.0);
        place(&mut cluster, first);
        cluster.advance(Time::from_secs_f64(100.0));
        submit(&mut cluster, 1, 50.0);
        let order = |order: Order| -> Vec<u32> {
            let jobs = order.sorted(&cluster, cluster.active(), |_| 1.0);
            jobs.into_iter().map(|id| id.0).collect()
        };
        assert_eq!(order(Order::Fifo), [0, 1, 2]);
        assert_eq!(order(Order::Srtf), [2, 1, 0]);
        assert_eq!(order(Order::Las), [1, 2, 0], "300 GPU·s against none");
        // (100 + 900) / 1000 = 1, (100 + 400) / 400 = 1.25, 50 / 50 = 1.
        assert_eq!(order(Order::Ftf), [1, 0, 2]);
        assert_eq!(order(Order::FtfAscending), [0, 2, 1]);
    }
}
