//! Why trials fail, how often each reason repeats, and how long a trial runs until it does.
//!
//! The runtime to failure is log-normal with one spread up to the 90th percentile and another beyond it, so that median,
//! p90 and p95 of the table are met exactly; at least 1 s, at most 15 days. (A plain log-normal through the three misses
//! p90 or p95 by a factor of up to two.) The cap is assumed: it lies above every published p95, and without one the
//! tails would outweigh the shares of lost time that the study prints.
//!
//! # Source
//! Philly (ATC'19), table 7.

use pleach_scheduler::Time;
use pleach_scheduler::portable_math::{exp, ln};

use pleach_workloads::Seed;
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

const fn reason(
    name: &'static str,
    trials: u32,
    jobs: u32,
    runtime_min: [f64; 3],
    by_size: [u32; 3],
) -> Reason {
    Reason {
        name,
        trials,
        jobs,
        runtime_min,
        trials_by_size: by_size,
    }
}

/// The reasons of 39,772 failed trials. Two more with four trials in all have no published quantiles and are left out.
///
/// # Source
/// Philly (ATC'19), table 7.
#[rustfmt::skip]
pub const REASONS: [Reason; 20] = [
    reason("CPU out of memory", 12_076, 2_803, [13.45, 17.73, 33.97], [11_465, 235, 376]),
    reason("incorrect inputs", 9_690, 4_936, [1.87, 404.83, 2_095.73], [5_844, 2_638, 1_208]),
    reason("semantic error", 2_943, 2_049, [2.72, 376.0, 1_436.88], [1_603, 494, 846]),
    reason("core dump", 2_912, 1_784, [0.85, 72.75, 431.65], [1_936, 496, 480]),
    reason("invalid memory access", 2_602, 1_235, [1.03, 403.5, 1_357.38], [712, 774, 1_116]),
    reason("model checkpoint error", 1_995, 948, [181.67, 3_728.93, 8_196.02], [743, 384, 868]),
    reason("CUDA failure", 1_484, 571, [1.32, 19.87, 82.17], [133, 1_153, 198]),
    reason("syntax error", 1_132, 883, [0.58, 5.02, 12.0], [780, 184, 168]),
    reason("traceback from crash", 777, 271, [1.02, 894.33, 1_394.07], [356, 277, 144]),
    reason("MPI error", 634, 166, [1.62, 3_015.27, 5_143.98], [456, 54, 124]),
    reason("GPU out of memory", 487, 261, [18.53, 353.62, 2_740.28], [237, 70, 180]),
    reason("MPI runtime failure", 478, 420, [1_389.48, 13_778.6, 18_090.88], [240, 141, 97]),
    reason("permission error", 299, 151, [1.0, 8.15, 15.85], [56, 202, 41]),
    reason("import error", 148, 148, [0.67, 4.58, 10.73], [108, 30, 10]),
    reason("job preempted", 147, 95, [559.08, 2_682.85, 5_892.23], [25, 95, 27]),
    reason("CUDA init failed", 141, 69, [1.08, 2.18, 4.63], [16, 66, 59]),
    reason("model diverged", 84, 30, [1.48, 44.37, 76.53], [78, 5, 1]),
    reason("CUDA version mismatch", 49, 49, [0.83, 1.65, 1.67], [1, 1, 47]),
    reason("GPU ECC error", 10, 10, [26.82, 671.92, 2_035.02], [1, 5, 4]),
    reason("no signature", 1_684, 698, [1.87, 28.0, 95.17], [1_235, 294, 155]),
];

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
