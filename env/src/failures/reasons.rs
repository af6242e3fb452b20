//! Why trials fail, how often each reason repeats, and how long a trial runs until it does.
//!
//! The runtime to failure is log-normal with one spread up to the 90th percentile and another beyond it, so that median,
//! p90 and p95 of the table are met exactly; at least 1 s, at most 15 days. (A plain log-normal through the three misses
//! p90 or p95 by a factor of up to two.) The cap is assumed: it lies above every published p95, and without one the
//! tails would outweigh the shares of lost time that the study prints.
//!
//! # Source
//! Philly (ATC'19), table 7.

use std::sync::LazyLock;

use pleach_scheduler::Time;
use pleach_scheduler::portable_math::{exp, ln};

use pleach_workloads::Seed;
use pleach_workloads::embedded::{number, rows};
use pleach_workloads::normal::standard_normal;

/// Standard normal quantiles of 0.9 and 0.95.
pub(super) const Z_90: f64 = 1.281_551_565_545;
pub(super) const Z_95: f64 = 1.644_853_626_951;
/// Shortest runtime to failure, s. Assumed.
const SHORTEST_S: f64 = 1.0;
/// Longest runtime to failure, s. Assumed; see the top of this file.
const LONGEST_S: f64 = 15.0 * 86_400.0;

/// Why a trial failed, with what the study counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reason {
    /// Its name.
    pub name: &'static str,
    /// Failed trials.
    pub trials: u32,
    /// Jobs with such a trial.
    pub jobs: u32,
    /// Runtime to failure, minutes: median, p90, p95.
    pub runtime_min: [f64; 3],
    /// Trials on 1, 2 to 4 and more than 4 GPUs.
    pub trials_by_size: [u32; 3],
}

/// The reasons, of `data/reasons.csv`.
pub static REASONS: LazyLock<Vec<Reason>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../data/reasons.csv"));
    let of_row = |[name, trials, jobs, median, p90, p95, one, some, many]: [&'static str; 9]| Reason {
        name,
        trials: number(trials) as u32,
        jobs: number(jobs) as u32,
        runtime_min: [median, p90, p95].map(number),
        trials_by_size: [one, some, many].map(|field| number(field) as u32),
    };
    rows.map(of_row).collect()
});

impl Reason {
    /// Failed trials per job that has any: 1 = never tried again.
    #[must_use]
    pub(crate) fn trials_per_job(&self) -> f64 {
        f64::from(self.trials) / f64::from(self.jobs)
    }

    /// Jobs of this size that failed for this reason, taking trials per job as equal over sizes (assumed).
    pub(super) fn jobs_of_size(&self, size: usize) -> f64 {
        f64::from(self.trials_by_size[size]) / self.trials_per_job()
    }

    /// Runtime to failure at a standard normal deviate, s.
    pub(super) fn runtime_s(&self, deviate: f64) -> f64 {
        let [median, p90, p95] = self.runtime_min.map(|minutes| ln(minutes * 60.0));
        let log = if deviate < Z_90 {
            median + (p90 - median) / Z_90 * deviate
        } else {
            p90 + (p95 - p90) / (Z_95 - Z_90) * (deviate - Z_90)
        };
        exp(log).clamp(SHORTEST_S, LONGEST_S)
    }
}

/// 0 for one GPU, 1 for 2 to 4, 2 for more.
pub(super) fn size_of(num_gpus: u32) -> usize {
    match num_gpus {
        0 | 1 => 0,
        2..=4 => 1,
        _ => 2,
    }
}

/// The reason at this point of the unit interval, weighted by the jobs of this size that failed for it.
pub(super) fn pick_reason(size: usize, at: f64) -> u8 {
    let sum: f64 = REASONS.iter().map(|reason| reason.jobs_of_size(size)).sum();
    let mut left = at * sum;
    for (reason, index) in REASONS.iter().zip(0_u8..) {
        left -= reason.jobs_of_size(size);
        if left < 0.0 {
            return index;
        }
    }
    REASONS.len() as u8 - 1
}

/// How long trial number `trial` (0 = the first) of job number `job` runs until it fails for this reason.
///
/// # Panics
/// Where `reason` is no index into [`REASONS`].
#[must_use]
pub(crate) fn runtime_to_failure(seed: Seed, job: u64, trial: u32, reason: u8) -> Time {
    let mut rng = seed
        .child("failing-job", job)
        .stream("runtime-to-failure", u64::from(trial));
    let deviate = standard_normal(&mut rng);
    Time::from_secs_f64(REASONS[usize::from(reason)].runtime_s(deviate))
}
