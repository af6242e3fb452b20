//! How jobs ended in the source, by gang bucket, and the GPU-time behind it (table 6 of the Philly study).

use pleach_env::workload::{JobSpec, Outcome, Workload};
use serde::Serialize;

use super::sizes::{BUCKETS, bucket, gpu_s};
use super::spread::{share, sorted};
use crate::evaluate::stats::quantile;

/// One outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutcomeRow {
    /// `completed`, `failed`, `killed`, `unknown`.
    pub outcome: &'static str,
    /// Jobs.
    pub num_jobs: usize,
    /// Part of all jobs.
    pub jobs: Option<f64>,
    /// Part of all GPU-time.
    pub gpu_time: Option<f64>,
    /// Median run time, s.
    pub run_time_s_p50: Option<f64>,
    /// Part of the jobs of each gang bucket. `[BUCKETS.len()]`
    pub by_bucket: [Option<f64>; BUCKETS.len()],
}

/// All outcomes that occur.
#[must_use]
pub fn outcomes(workload: &Workload) -> Vec<OutcomeRow> {
    let jobs = &workload.jobs;
    let work = workload.demand_gpu_s();
    let rows = Outcome::ALL.iter().map(|outcome| {
        let mine = || jobs.iter().filter(|job| job.outcome == *outcome);
        let num_jobs = mine().count();
        let in_bucket = |number: usize| {
            let count = |job: &&JobSpec| bucket(job.num_gpus) == number;
            share(
                mine().filter(count).count() as f64,
                jobs.iter().filter(count).count() as f64,
            )
        };
        OutcomeRow {
            outcome: outcome.word(),
            num_jobs,
            jobs: share(num_jobs as f64, jobs.len() as f64),
            gpu_time: share(mine().map(gpu_s).sum(), work),
            run_time_s_p50: quantile(&sorted(mine().map(|job| job.run_time_s)), 0.5),
            by_bucket: std::array::from_fn(in_bucket),
        }
    });
    rows.filter(|row| row.num_jobs > 0).collect()
}
