//! The preemptive planner that the Helios and the Lucid simulator share.
//!
//! Running and waiting jobs are put into one order, and the GPUs of the cluster are given out along it, passing over jobs
//! that are too large for what is left. That is a count, a *virtual quota*: a running job that gets none is stopped, a
//! waiting one that gets some is tried, and may still find no consolidated placement; then it waits, and its share of the
//! count stays idle.
//!
//! They evaluate this every second (Tiresias every 60 s). Between events the outcome cannot change: running jobs only
//! move ahead of waiting ones, and a job that moves ahead of one that it was counted with takes nothing from it. So we
//! evaluate at events, which is the same and a thousand times less work.

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::{JobId, Planner, PolicyError, Time};

use super::preset::start;

/// The order in which GPUs are given out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Shortest remaining time first; of equals, waiting jobs go before running ones.
    ShortestRemaining,
    /// Jobs that have received at most this much before the others; by submission within the two groups; of equals,
    /// running jobs go before waiting ones. GPU·s
    ServedAtMost(f64),
}

/// The planner and its two lists. The order *in* a list decides between equals, so both are kept as the others keep them.
#[derive(Clone, Debug)]
pub(super) struct VirtualQuota {
    name: &'static str,
    order: Order,
    /// Waiting jobs as they came, stopped ones at the end.
    queue: Vec<JobId>,
    /// Running jobs as they started.
    running: Vec<JobId>,
    num_seen: usize,
}

impl VirtualQuota {
    pub(super) fn new(name: &'static str, order: Order) -> VirtualQuota {
        VirtualQuota {
            name,
            order,
            queue: Vec::new(),
            running: Vec::new(),
            num_seen: 0,
        }
    }

    fn sorted(&self, cluster: &Cluster) -> Vec<JobId> {
        let now = cluster.now();
        let (queue, running) = (self.queue.iter(), self.running.iter());
        match self.order {
            Order::ShortestRemaining => {
                let rest = |job: &JobId| Time::from_secs_f64(cluster.job(*job).remaining_s_at(now));
                let mut jobs: Vec<JobId> = queue.chain(running).copied().collect();
                jobs.sort_by_cached_key(rest);
                jobs
            }
            Order::ServedAtMost(most_gpu_s) => {
                let mut jobs: Vec<JobId> = running.chain(queue).copied().collect();
                jobs.sort_by_cached_key(|job| {
                    let job = cluster.job(*job);
                    (job.attained_gpu_s_at(now) > most_gpu_s, job.submit)
                });
                jobs
            }
        }
    }
}

impl Planner for VirtualQuota {
    fn name(&self) -> &str {
        self.name
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.running
            .retain(|job| cluster.job(*job).state == JobState::Running);
        let num_jobs = cluster.jobs().len();
        self.queue
            .extend((self.num_seen..num_jobs).map(|job| JobId(job as u32)));
        self.num_seen = num_jobs;
        let mut left = cluster.num_gpus();
        let (mut stopped, mut tried) = (Vec::new(), Vec::new());
        for id in self.sorted(cluster) {
            let job = cluster.job(id);
            let running = job.state == JobState::Running;
            if job.request.num_gpus <= left {
                left -= job.request.num_gpus;
                if !running {
                    tried.push(id);
                }
            } else if running {
                stopped.push(id);
            }
        }
        for job in stopped {
            cluster.preempt(job);
            self.queue.push(job);
        }
        self.running
            .retain(|job| cluster.job(*job).state == JobState::Running);
        for job in tried {
            if start(cluster, job) {
                self.running.push(job);
            }
        }
        self.queue
            .retain(|job| cluster.job(*job).state == JobState::Pending);
        Ok(())
    }
}
