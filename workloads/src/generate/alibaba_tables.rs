//! Figures of Alibaba's cluster with guaranteed and spot jobs that the generator draws from.
//!
//! # Source
//! `alibaba/clusterdata`, cluster-trace-v2026-spot-gpu: the file of nodes, and tables that were computed of its 466,867 jobs
//! (GPU-Cluster-Spot-Resource-Dataset-Analysis, MIT): jobs and GPU time by demand, by GPU type, by organisation and type, by run
//! time, by hour. *Assumed*: gangs by GPU type (the least that both margins of jobs need, with the mean gang of each type), the
//! longest part of each gang's run times (so that its GPU time is the published one), what is inside a bucket of gangs.

use super::quantiles::Curve;
use super::site::Machines;

const fn machines(
    gpu_type: &'static str,
    count: u32,
    gpus_per_node: u32,
    gpu_memory_gib: f64,
    cpu_cores: f64,
) -> Machines {
    Machines {
        count,
        gpus_per_node,
        gpu_type,
        gpu_memory_gib,
        cpu_cores,
        memory_gib: 0.0,
    }
}

/// Nodes; ten of four GPUs are counted as five of eight. The memory of the two types that are not named is *assumed*.
pub(super) const NODES: [Machines; 7] = [
    machines("A10", 2494, 1, 24.0, 128.0),
    machines("A100-80GB", 432, 8, 80.0, 128.0),
    machines("H800", 219, 8, 80.0, 192.0),
    machines("GPU-series-1", 901, 1, 48.0, 192.0),
    machines("GPU-series-1", 82, 8, 48.0, 192.0),
    machines("GPU-series-2", 122, 8, 80.0, 192.0),
    machines("A800", 22, 8, 80.0, 128.0),
];

/// Gangs of the columns of [`TYPES`], and whether a job asks for half a GPU. Buckets: below one, 1, 2-4 (as two), 5-8, 9-16, 17-32,
/// 33-64, 65-128, above.
pub(super) const GANGS: [(u32, bool); 10] = [
    (1, true),
    (1, false),
    (2, false),
    (4, false),
    (8, false),
    (16, false),
    (32, false),
    (64, false),
    (128, false),
    (512, false),
];

/// Jobs of each type and gang, of 100,000.
#[rustfmt::skip]
pub(super) const TYPES: [(&str, [u32; 10]); 6] = [
    ("A10",          [10_001, 37_803,   650,   350,   170,     0,   0,   0,   0,   0]),
    ("A100-80GB",    [   252, 18_939, 4_617, 2_486, 6_723, 1_682, 870, 363, 149, 122]),
    ("GPU-series-2", [    33,  2_572,   794,   427, 1_577,   477, 298, 155,  78,  99]),
    ("GPU-series-1", [   100,  3_000,   325,   175,   350,    80,  15,   5,   0,   0]),
    ("H800",         [     4,    415,   201,   109,   643,   257, 221, 157, 107, 262]),
    ("A800",         [    16,  1_015,   232,   125,   337,    85,  43,  18,   7,   6]),
];

/// Share of jobs that run for more than three days, by gang: what gives each gang its published GPU time.
const LONG: [f64; 10] = [
    0.0118, 0.0285, 0.0258, 0.0258, 0.008_45, 0.004_74, 0.003_72, 0.001_85, 0.001_31, 0.001_86,
];
/// That share over the one above, by type: what gives each type its published GPU time. Of jobs of one GPU of two types the share
/// itself.
const LONG_OF_TYPE: [f64; 6] = [1.0, 1.0, 0.68, 1.0, 1.33, 0.88];
const LONG_A10: f64 = 0.0902;
const LONG_SERIES_1: f64 = 0.402;
/// Spot jobs are 11.0 % of the jobs and 2.4 % of the GPU time; both kinds together have the shares above.
pub(super) const SPOT_PART: f64 = 0.11;
const SPOT_LONG: f64 = 0.16;
const HP_LONG: f64 = (1.0 - SPOT_PART * SPOT_LONG) / (1.0 - SPOT_PART);

/// Run times at the levels of a curve, s: up to three days, and beyond.
const TIMES_S: [f64; 12] = [
    1.0,
    60.0,
    600.0,
    1216.0,
    3600.0,
    21_600.0,
    45_773.0,
    86_400.0,
    259_200.0,
    461_465.0,
    5_663_026.0,
    15_897_600.0,
];
/// Levels of the first nine among jobs of up to four GPUs and of more. Together they are the published ones of all jobs (0.1236,
/// 0.3703, 0.5, 0.7194, 0.8598, 0.9, 0.9206; 6 % run for longer); larger gangs lean to the longer ones, as published GPU time
/// between an hour and three days demands.
const SMALL: [f64; 9] = [0.0, 0.126, 0.3765, 0.5071, 0.7264, 0.8659, 0.9049, 0.9235, 0.94];
const LARGE: [f64; 9] = [0.0, 0.11, 0.335, 0.46, 0.68, 0.825, 0.872, 0.904, 0.94];
/// Levels of the others among jobs that run for longer.
const LONG_LEVELS: [f64; 3] = [0.1667, 0.8333, 1.0];

const fn levels(short: &[f64; 9], long: f64) -> [f64; 12] {
    let mut levels = [1.0; 12];
    let mut at = 0;
    while at < 9 {
        levels[at] = short[at] / 0.94 * (1.0 - long);
        at += 1;
    }
    levels[9] = 1.0 - long * (1.0 - LONG_LEVELS[0]);
    levels[10] = 1.0 - long * (1.0 - LONG_LEVELS[1]);
    levels
}

/// Levels by type and gang.
type Levels = [[[f64; 12]; 10]; 6];

const fn all_levels(part: f64) -> Levels {
    let mut rows = [[[0.0; 12]; 10]; 6];
    let mut of_type = 0;
    while of_type < 6 {
        let mut gang = 0;
        while gang < 10 {
            let long = match (of_type, gang) {
                (0, 1) => LONG_A10,
                (3, 1) => LONG_SERIES_1,
                _ => LONG[gang] * LONG_OF_TYPE[of_type],
            };
            let short = if gang < 4 { &SMALL } else { &LARGE };
            rows[of_type][gang] = levels(short, long * part);
            gang += 1;
        }
        of_type += 1;
    }
    rows
}

static HP_LEVELS: Levels = all_levels(HP_LONG);
static SPOT_LEVELS: Levels = all_levels(SPOT_LONG);

/// Run times of a type's jobs of a gang, a row of [`TYPES`] and a column of [`GANGS`].
pub(super) fn run_times(of_type: usize, gang: usize, is_spot: bool) -> Curve {
    let levels = if is_spot { &SPOT_LEVELS } else { &HP_LEVELS };
    Curve::new(&levels[of_type][gang], &TIMES_S)
}

/// Organisations with a tenth of the GPU time or less of the rest together: share of the GPU time, and how it divides over the types
/// of [`TYPES`].
#[rustfmt::skip]
pub(super) const ORGANISATIONS: [(&str, f64, [f64; 6]); 11] = [
    ("org-13", 0.3215, [0.834, 0.017, 0.0, 0.149, 0.0, 0.0]),
    ("org-57", 0.2877, [0.005, 0.371, 0.153, 0.009, 0.417, 0.046]),
    ("org-19", 0.1009, [0.214, 0.054, 0.0, 0.728, 0.003, 0.0]),
    ("org-66", 0.0533, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
    ("org-4", 0.0414, [0.009, 0.481, 0.487, 0.023, 0.0, 0.0]),
    ("org-67", 0.0255, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
    ("org-18", 0.0254, [0.464, 0.065, 0.241, 0.230, 0.0, 0.0]),
    ("org-37", 0.0241, [0.109, 0.891, 0.0, 0.0, 0.0, 0.0]),
    ("org-24", 0.0125, [0.014, 0.962, 0.018, 0.006, 0.0, 0.0]),
    ("org-34", 0.0117, [0.999, 0.0, 0.0, 0.001, 0.0, 0.0]),
    ("others", 0.0960, [0.700, 0.100, 0.060, 0.040, 0.060, 0.001]),
];

/// Arrival rate by hour of the day, mean 1; the hour at which the trace begins, in which all that ran is counted, is left out.
pub(super) const HOURS: [f64; 24] = [
    0.98, 0.83, 0.74, 0.70, 0.68, 0.74, 0.74, 0.79, 0.83, 0.89, 1.31, 1.34, 1.03, 1.01, 1.32, 1.31, 1.41,
    1.33, 1.05, 1.11, 1.14, 1.00, 0.98, 0.74,
];
/// No weekday is published.
pub(super) const WEEKDAYS: [f64; 7] = [1.0; 7];
