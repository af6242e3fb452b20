//! Figures of Alibaba's PAI cluster of 2020 that the generator draws from.
//!
//! # Source
//! Weng et al., NSDI 2022 (trace CC BY 4.0): machine list; run times from a random sample of 60,105 of the 732,691
//! finished GPU tasks, by GPU count. GPUs per job: comparison of clusters in Hu et al., NSDI 2024 (CC BY 4.0): at most one
//! GPU 97.1 %, two 1.5 %, up to four 0.5 %, up to eight 0.9 %; mean 0.683, median 0.5. Requests below a GPU are a quarter,
//! a half and a tenth; how they split is not published: *assumed*, so that mean and median are met.

use super::quantiles::RunTimes;
use super::site::Machines;

/// Run times by GPUs; the first row holds shares of a GPU as well.
#[rustfmt::skip]
pub(super) const RUN_TIMES: [RunTimes; 4] = [
    RunTimes { num_gpus_max: 1, quantiles_s: [
        5.0, 18.0, 21.8, 24.0, 24.0, 25.0, 28.0, 30.0, 32.0, 33.0, 35.0, 39.0, 44.0, 51.0, 56.0,
        64.0, 76.0, 94.0, 121.0, 149.0, 186.0, 216.0, 237.0, 267.0, 304.0, 344.0, 393.0, 467.0, 562.0, 668.0,
        785.0, 924.0, 1083.0, 1342.0, 1643.0, 2031.0, 2537.0, 3186.0, 3811.0, 4617.0, 5428.0, 6296.0, 7415.0, 8853.0, 10792.0,
        11929.0, 13323.0, 14998.0, 17211.0, 20166.0, 23728.0, 29811.0, 42716.0, 50932.0, 58458.0, 95069.0, 165718.0, 172800.0,
    ] },
    RunTimes { num_gpus_max: 2, quantiles_s: [
        6.0, 16.0, 26.0, 32.0, 34.0, 39.0, 42.0, 44.0, 45.0, 47.0, 49.0, 52.0, 54.0, 56.0, 63.0,
        66.0, 76.0, 85.0, 94.0, 106.0, 129.0, 149.0, 162.0, 178.0, 194.0, 215.0, 245.0, 280.0, 335.0, 401.0,
        476.0, 557.0, 670.0, 853.0, 963.0, 1151.0, 1492.0, 1710.0, 2168.0, 2888.0, 3826.0, 5118.0, 5782.0, 7133.0, 9315.0,
        10342.0, 11775.0, 14838.0, 20093.0, 23369.0, 31008.0, 45596.0, 59812.0, 67700.0, 98554.0, 172800.0, 172800.0, 172800.0,
    ] },
    RunTimes { num_gpus_max: 4, quantiles_s: [
        17.0, 37.0, 51.8, 57.0, 62.0, 70.0, 76.9, 78.0, 91.8, 102.0, 108.0, 128.0, 149.0, 175.0, 204.0,
        220.0, 248.0, 285.0, 345.0, 376.0, 417.0, 492.0, 624.0, 738.0, 874.0, 1002.0, 1220.0, 1423.0, 1692.0, 2079.0,
        2370.0, 2780.0, 3032.0, 3639.0, 4562.0, 5636.0, 7056.0, 8390.0, 10677.0, 13238.0, 16132.0, 19188.0, 23342.0, 30576.0, 35040.0,
        37560.0, 40624.0, 43561.0, 47740.0, 52891.0, 63833.0, 78242.0, 93238.0, 105310.0, 114114.0, 132178.0, 172800.0, 172800.0,
    ] },
    RunTimes { num_gpus_max: u32::MAX, quantiles_s: [
        30.0, 61.0, 66.4, 71.0, 73.0, 78.8, 83.1, 89.3, 99.0, 103.0, 108.0, 116.0, 128.0, 147.0, 174.0,
        191.0, 223.0, 254.0, 309.0, 372.0, 475.0, 543.0, 718.0, 1000.0, 1196.0, 1485.0, 1899.0, 2019.0, 2497.0, 3144.0,
        3764.0, 4198.0, 4619.0, 5249.0, 5667.0, 6547.0, 7446.0, 9090.0, 11671.0, 14116.0, 16531.0, 19164.0, 25889.0, 31755.0, 38768.0,
        43347.0, 47633.0, 57941.0, 73537.0, 87657.0, 103330.0, 140993.0, 156540.0, 168403.0, 172800.0, 172800.0, 172800.0, 172800.0,
    ] },
];

/// (GPUs, share of a GPU in thousandths, share of jobs).
pub(super) const DEMANDS: [(u32, u16, f64); 7] = [
    (1, 100, 0.08 * 0.971),
    (1, 250, 0.24 * 0.971),
    (1, 500, 0.33 * 0.971),
    (1, 1000, 0.35 * 0.971),
    (2, 1000, 0.015),
    (4, 1000, 0.005),
    (8, 1000, 0.009),
];

/// The 1,814 nodes with GPUs: 6,742 GPUs. Memory of a MISC GPU is *assumed*.
#[rustfmt::skip]
pub(super) const MACHINES: [Machines; 6] = [
    Machines { count: 798, gpus_per_node: 2, gpu_type: "P100", gpu_memory_gib: 16.0, cpu_cores: 64.0, memory_gib: 512.0 },
    Machines { count: 497, gpus_per_node: 2, gpu_type: "T4", gpu_memory_gib: 16.0, cpu_cores: 96.0, memory_gib: 512.0 },
    Machines { count: 280, gpus_per_node: 8, gpu_type: "MISC", gpu_memory_gib: 12.0, cpu_cores: 96.0, memory_gib: 512.0 },
    Machines { count: 135, gpus_per_node: 8, gpu_type: "V100M32", gpu_memory_gib: 32.0, cpu_cores: 96.0, memory_gib: 384.0 },
    Machines { count: 59, gpus_per_node: 8, gpu_type: "V100", gpu_memory_gib: 16.0, cpu_cores: 96.0, memory_gib: 512.0 },
    Machines { count: 45, gpus_per_node: 8, gpu_type: "V100", gpu_memory_gib: 16.0, cpu_cores: 96.0, memory_gib: 384.0 },
];

/// Users (more than 1,300 are published), and the exponent of the Zipf law with which the top 5 % submit the published
/// 77 % of the work: 0.777.
pub(super) const USERS: (usize, f64) = (1300, 1.2);

/// Arrival rate by hour of the day, mean 1; hour zero is not known.
pub(super) const HOURS: [f64; 24] = [
    0.63, 0.83, 0.92, 0.97, 1.21, 0.93, 0.84, 1.18, 1.29, 1.06, 1.0, 1.01, 1.11, 1.04, 1.14, 1.14, 0.95,
    0.93, 0.87, 0.69, 0.7, 1.49, 1.09, 0.99,
];
