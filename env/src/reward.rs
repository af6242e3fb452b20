//! Rewards: named time integrals, mixed by weight.
//!
//! By Little's law the time integral of the number of jobs in the system is the sum of all JCTs, so its negative,
//! handed out piece by piece as time passes, is a dense reward whose undiscounted return is the objective itself.

use serde::{Deserialize, Serialize};

use crate::world::Integrals;
use pleach_workloads::Workload;

/// Weights of the integrals. Each is scaled such that 1 is a natural unit of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardConfig {
    /// Weight of minus the average JCT over the average isolated run time.
    pub jct: f64,
    /// Weight of minus the average slowdown.
    pub slowdown: f64,
    /// Weight of the held GPU time over the workload's isolated GPU time.
    pub utilisation: f64,
}

impl Default for RewardConfig {
    fn default() -> RewardConfig {
        RewardConfig {
            jct: 1.0,
            slowdown: 0.0,
            utilisation: 0.0,
        }
    }
}

/// Reads integrals as rewards: each reading is what was gained since the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    last: Integrals,
    /// Reward per unit of each integral.
    jobs_s: f64,
    slowdown: f64,
    held_gpu_s: f64,
}

impl Meter {
    pub(crate) fn new(config: &RewardConfig, workload: &Workload) -> Meter {
        let num_jobs = workload.jobs.len().max(1) as f64;
        let run_s: f64 = workload.jobs.iter().map(|job| job.run_time_s).sum();
        let gpu_s: f64 = workload
            .jobs
            .iter()
            .map(|job| job.run_time_s * f64::from(job.num_gpus))
            .sum();
        Meter {
            last: Integrals::default(),
            jobs_s: -config.jct / run_s.max(f64::MIN_POSITIVE),
            slowdown: -config.slowdown / num_jobs,
            held_gpu_s: config.utilisation / gpu_s.max(f64::MIN_POSITIVE),
        }
    }

    /// The reward of what was gained since the last reading, and what that was.
    pub(crate) fn read(&mut self, now: Integrals) -> (f32, Integrals) {
        let gained = now.since(std::mem::replace(&mut self.last, now));
        let reward = self.jobs_s * gained.jobs_s
            + self.slowdown * gained.slowdown
            + self.held_gpu_s * gained.held_gpu_s;
        (reward as f32, gained)
    }
}
