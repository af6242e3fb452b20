//! Figures of Acme's cluster Seren that the generator draws from.
//!
//! # Source
//! Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI 2024, and the figures
//! published with it (CC BY 4.0); March to August 2023, 663,813 GPU jobs. Published: share of jobs by kind of work, share
//! of jobs by gang size, run-time quantiles (50, 75, 90, 99 %) by kind of work, final states over all jobs and over all
//! GPU time. *Assumed*: gangs by kind of work (set so that both margins hold), the lower quantiles (5 % at 4 s, 25 % at
//! 0.15 of the median, so that the published distribution over all jobs holds), the longest run (four times the 99 %
//! quantile, at most the published 14 days), final states by kind of work (so that both margins hold), runs of evaluation
//! jobs, users.

use super::quantiles::Curve;

/// Gang sizes of the columns of [`Work::jobs`].
pub(super) const GANGS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// A kind of work.
pub(super) struct Work {
    pub name: &'static str,
    /// Jobs of each size in [`GANGS`], of 100,000.
    pub jobs: [u32; 11],
    pub run_times: Curve,
    /// Share of jobs that their user ended.
    pub killed: f64,
    /// Share of jobs that failed.
    pub failed: f64,
}

const LEVELS: [f64; 8] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0];
const EVALUATION_S: [f64; 8] = [1.0, 4.0, 19.4, 129.0, 391.0, 1208.0, 15_600.0, 62_400.0];
const FINE_TUNING_S: [f64; 8] = [1.0, 4.0, 29.6, 197.0, 452.0, 1128.0, 13_300.0, 53_200.0];
const OTHER_S: [f64; 8] = [1.0, 4.0, 11.6, 77.0, 356.0, 2288.0, 55_500.0, 222_000.0];
const MULTI_MODAL_S: [f64; 8] = [1.0, 4.0, 38.0, 253.0, 795.0, 5373.0, 75_600.0, 302_400.0];
const DEBUGGING_S: [f64; 8] = [1.0, 4.0, 17.1, 114.0, 359.0, 935.0, 22_600.0, 90_400.0];
const PRE_TRAINING_S: [f64; 8] = [1.0, 4.0, 44.6, 297.0, 1196.0, 24_600.0, 313_000.0, 1_209_604.0];

/// Evaluation first.
#[rustfmt::skip]
pub(super) const WORKS: [Work; 6] = [
    Work { name: "evaluation", jobs: [43666, 8135, 1462, 11385, 136, 51, 0, 0, 0, 0, 0], run_times: Curve::new(&LEVELS, &EVALUATION_S), killed: 0.068, failed: 0.433 },
    Work { name: "fine-tuning", jobs: [955, 890, 400, 11494, 595, 335, 174, 42, 0, 0, 0], run_times: Curve::new(&LEVELS, &FINE_TUNING_S), killed: 0.068, failed: 0.433 },
    Work { name: "other", jobs: [8643, 2013, 452, 3250, 135, 63, 24, 6, 0, 0, 0], run_times: Curve::new(&LEVELS, &OTHER_S), killed: 0.068, failed: 0.433 },
    Work { name: "multi-modal", jobs: [417, 194, 87, 1671, 195, 183, 114, 37, 0, 0, 0], run_times: Curve::new(&LEVELS, &MULTI_MODAL_S), killed: 0.068, failed: 0.433 },
    Work { name: "debugging", jobs: [379, 177, 95, 950, 118, 111, 41, 17, 7, 2, 2], run_times: Curve::new(&LEVELS, &DEBUGGING_S), killed: 0.068, failed: 0.433 },
    Work { name: "pre-training", jobs: [18, 8, 8, 91, 23, 159, 198, 159, 133, 48, 53], run_times: Curve::new(&LEVELS, &PRE_TRAINING_S), killed: 0.85, failed: 0.04 },
];

/// Mean length of a run of evaluation jobs: *assumed*; a checkpoint is evaluated on many data sets at once.
pub(super) const EVALUATION_RUN_LENGTH_MEAN: f64 = 5.0;
/// Correlation of the normal scores of run times in a run, *assumed*.
pub(super) const RUN_TIME_CORRELATION: f64 = 0.6;
/// Gaps inside a run, s: (share of gaps of at most this length, gap). *Assumed*.
pub(super) const RUN_GAPS_S: [(f64, f64); 3] = [(0.5, 0.0), (0.9, 1.0), (1.0, 10.0)];
/// Users and the exponent of the Zipf law of their activity, *assumed*.
pub(super) const USERS: (usize, f64) = (100, 1.2);

/// Arrival rate by hour of the day, local time, mean 1: that of all of Helios (same country and kind of users), as Acme's
/// is not published. *Assumed*.
pub(super) const HOURS: [f64; 24] = [
    0.9, 0.84, 0.68, 0.6, 0.56, 0.56, 0.55, 0.51, 0.56, 0.82, 1.12, 1.24, 1.2, 1.22, 1.33, 1.43, 1.49, 1.33,
    1.1, 1.2, 1.31, 1.22, 1.14, 1.09,
];
/// Arrival rate by weekday from Monday, mean 1; a weekend factor of 0.63 is *assumed*.
pub(super) const WEEKDAYS: [f64; 7] = [1.12, 1.12, 1.12, 1.12, 1.12, 0.7, 0.7];
