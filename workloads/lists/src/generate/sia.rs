//! Sia's and Pollux's experiments: few jobs in few hours, each of them a model by how much GPU time it needs, on 64 GPUs.
//!
//! A job's category (GPU-hours below 1, 10, 100, above) comes from the published split; its gang and run time come from
//! the list that the experiment sampled (Philly, Helios, ITP), among the jobs of that category.
//!
//! # Source
//! Jayaram Subramanya et al., SOSP 2023, and Qiao et al., OSDI 2021: 160 jobs in 8 h (Philly, Helios) or 960 in 48 h with
//! 5 to 100 jobs/h (newTrace, drawn from ITP); categories and their models; 64 T4 on 16 nodes, or 24 T4, 24 RTX 2080 Ti
//! and 16 A100 on nodes of 4, 8 and 8. Splits: counted from the job lists published with Sia; that of `sia-helios` from
//! Helios Venus with jobs of at most a day. Speeds by GPU type are *assumed*: single-precision peaks of the vendors'
//! sheets (8.1, 13.4, 19.5 TFLOP/s).
//!
//! Not here: batch sizes and statistical efficiency; jobs are rigid, as the experiments' rigid baselines see them.

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use rand::Rng;

use super::arrivals::{Rate, Shape, fit_span};
use super::poisson::set_arrivals;
use super::profile::{Work, row};
use super::profile_config::ProfileConfig;
use super::quantiles::Curve;
use super::site::{Machines, capacity, require_locality, scaled_cluster};
use super::{limits, pick, unit};
use crate::Error;
use crate::seed::Seed;
use crate::{JobSpec, NUM_JOBS_MAX, Outcome, RUN_TIME_S_MAX, Workload};

settings! {
    /// Parameters of `sia-philly`, `sia-helios` and `sia-newtrace`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SiaConfig {
        /// Jobs to draw, 1 to 10,000,000; absent = those of the experiment, 160 or 960.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub num_jobs: Option<usize> = None, in 1..=NUM_JOBS_MAX;
        /// Clusters of 64 GPUs that are put together, 1 to 10,000.
        pub num_clusters: u32 = 1, in 1..=10_000;
        /// Whether the cluster has three GPU types; else all are T4.
        pub heterogeneous: bool = true;
        /// Mean arrival rate; none, in files 0, = from the load.
        #[serde(with = "super::rate")]
        pub jobs_per_hour: Option<f64> = Some(20.0), in 1e-3..=1e6;
        /// Work over capacity between the first and the last arrival where no rate is given, 0.001 to 100.
        pub load: f64 = 0.8, in 0.001..=100.0;
        /// Largest gang, 1 to 64; larger ones are drawn again.
        pub gang_max: u32 = 16, in 1..=64;
        /// Longest run time on the T4, s, at least 60: jobs beyond it are drawn again.
        pub run_time_s_max: f64 = 86_400.0, in 60.0..=RUN_TIME_S_MAX;
        /// Whether jobs carry a time limit.
        pub user_limits: bool = true;
        /// What a loose placement costs.
        pub locality: LocalityFactors = LocalityFactors::PHILLY;
    }
}

/// What tells the three experiments apart.
pub(super) struct Experiment {
    pub name: &'static str,
    pub num_jobs: usize,
    /// Shares of the categories S, M, L, XL.
    shares: [f64; 4],
    /// Profile of the list that it samples.
    sampled: &'static str,
    /// Spread of the wandering rate; 0 for Poisson arrivals.
    sigma: f64,
}

pub(super) const PHILLY: Experiment = Experiment {
    name: "sia-philly",
    num_jobs: 160,
    shares: [0.78, 0.154, 0.046, 0.02],
    sampled: "philly-like",
    sigma: 0.0,
};
pub(super) const HELIOS: Experiment = Experiment {
    name: "sia-helios",
    num_jobs: 160,
    shares: [0.776, 0.139, 0.068, 0.017],
    sampled: "helios-like",
    sigma: 0.0,
};
pub(super) const NEWTRACE: Experiment = Experiment {
    name: "sia-newtrace",
    num_jobs: 960,
    shares: [0.526, 0.43, 0.036, 0.008],
    sampled: "itp-like",
    sigma: RATE_SIGMA,
};
/// Spread and hourly correlation of the wandering rate of newTrace, set so that a day's hours lie in the published 5 to
/// 100 jobs/h.
const RATE_SIGMA: f64 = 0.6;
const RATE_CORRELATION: f64 = 0.8;

/// Models by category; a category with two takes each with equal probability.
const MODELS: [(&str, usize); 5] = [
    ("resnet18-cifar10", 0),
    ("bert", 1),
    ("deepspeech2", 1),
    ("yolov3", 2),
    ("resnet50-imagenet", 3),
];
/// Bounds of the categories, GPU-hours.
const BOUNDS_H: [f64; 5] = [0.0, 1.0, 10.0, 100.0, f64::INFINITY];

/// Nodes, GPUs in each, type and its memory, GiB.
const T4: [(u32, u32, &str, f64); 1] = [(16, 4, "t4", 16.0)];
const MIXED: [(u32, u32, &str, f64); 3] = [(6, 4, "t4", 16.0), (3, 8, "rtx", 11.0), (2, 8, "a100", 40.0)];
/// Speed over that of the T4.
const SPEEDS: [(&str, f64); 3] = [("t4", 1.0), ("rtx", 1.65), ("a100", 2.41)];

impl SiaConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.check_at("generator", "see docs/workloads.md")?;
        require_locality(self.locality)
    }

    fn cluster(&self) -> ClusterSpec {
        cluster(self.heterogeneous, self.num_clusters)
    }

    fn classes(&self, cluster: &ClusterSpec) -> Vec<ModelClass> {
        let speeds = speeds(cluster);
        let classes = MODELS.iter().map(|(name, _)| ModelClass {
            name: (*name).into(),
            speed: speeds.clone(),
            locality: self.locality,
            ..ModelClass::default()
        });
        classes.collect()
    }
}

/// The experiments' clusters, so many of them put together.
pub(super) fn cluster(heterogeneous: bool, num_clusters: u32) -> ClusterSpec {
    let list = if heterogeneous { &MIXED[..] } else { &T4[..] };
    let machines = list
        .iter()
        .map(|&(count, gpus_per_node, gpu_type, gpu_memory_gib)| Machines {
            count,
            gpus_per_node,
            gpu_type: gpu_type.into(),
            gpu_memory_gib,
            cpu_cores: 0.0,
            memory_gib: 0.0,
        });
    let num_nodes: u32 = list.iter().map(|machines| machines.0).sum();
    scaled_cluster(&machines.collect::<Vec<_>>(), num_nodes * num_clusters, 16)
}

/// Speed on each type of such a cluster.
pub(super) fn speeds(cluster: &ClusterSpec) -> Vec<f64> {
    let speed = |name: &str| SPEEDS.iter().find(|row| row.0 == name).map_or(1.0, |row| row.1);
    cluster.gpu_types.iter().map(|gpu| speed(&gpu.name)).collect()
}

/// One gang's part in a category: the levels of its run times between the category's bounds.
struct Part<'a> {
    num_gpus: u32,
    run_times: &'a Curve,
    from: f64,
    to: f64,
    /// Relative number of jobs.
    jobs: f64,
}

fn parts(work: &Work, category: usize, gang_max: u32, run_time_s_max: f64) -> Vec<Part<'_>> {
    let gangs = work.mix.iter().filter(|row| row.gpus <= gang_max);
    let parts = gangs.filter_map(|demand| {
        let num_gpus = demand.gpus;
        let run_times = row(&work.run_times, num_gpus)?;
        let level =
            |hours: f64| run_times.share_below((hours * 3600.0 / f64::from(num_gpus)).min(run_time_s_max));
        let from = if category == 0 {
            0.0
        } else {
            level(BOUNDS_H[category])
        };
        let to = level(BOUNDS_H[category + 1]);
        Some(Part {
            num_gpus,
            run_times,
            from,
            to,
            jobs: demand.jobs * (to - from),
        })
    });
    parts.filter(|part| part.jobs > 0.0).collect()
}

pub(super) fn generate(
    parameters: &SiaConfig,
    experiment: &Experiment,
    seed: Seed,
) -> Result<Workload, Error> {
    let cluster = parameters.cluster();
    // A gang stays on one GPU type; the largest pool of a heterogeneous cluster has 24 GPUs.
    let largest = parameters.gang_max.min(capacity(&cluster));
    let largest = if parameters.heterogeneous {
        largest.min(24 * parameters.num_clusters)
    } else {
        largest
    };
    let sampled = ProfileConfig::named(experiment.sampled).profile;
    let parts: Vec<Vec<Part<'_>>> = (0..4)
        .map(|category| parts(&sampled.works[0], category, largest, parameters.run_time_s_max))
        .collect();
    let weights: Vec<Vec<f64>> = parts
        .iter()
        .map(|parts| parts.iter().map(|part| part.jobs).collect())
        .collect();
    // Categories that a short longest run time leaves without jobs are drawn again.
    let shares: Vec<f64> = experiment
        .shares
        .iter()
        .zip(&parts)
        .map(|(share, parts)| if parts.is_empty() { 0.0 } else { *share })
        .collect();
    let mut rng = seed.stream("jobs", 0);
    let mut jobs = Vec::new();
    for position in 0..parameters.num_jobs.unwrap_or(experiment.num_jobs) {
        let category = pick(&shares, &mut rng);
        let part = &parts[category][pick(&weights[category], &mut rng)];
        let run_time_s = part
            .run_times
            .run_time_s(part.from + unit(&mut rng) * (part.to - part.from));
        let factor = limits::draw_factor(&mut rng);
        jobs.push(JobSpec {
            id: position.to_string(),
            submit: Time::ZERO,
            num_gpus: part.num_gpus,
            run_time_s,
            estimate_s: parameters
                .user_limits
                .then(|| limits::limit_s(run_time_s, factor)),
            tenant: 0,
            class: draw_model(category, &mut rng),
            user: None,
            outcome: Outcome::Completed,
            resources: Resources::WHOLE_GPU,
            observed: None,
        });
    }
    let mut workload = Workload {
        name: experiment.name.into(),
        classes: parameters.classes(&cluster),
        cluster,
        jobs,
    };
    set_arrivals(&mut workload, parameters.jobs_per_hour, parameters.load, seed)?;
    if experiment.sigma > 0.0 {
        wander(&mut workload, experiment.sigma, seed);
    }
    Ok(workload)
}

fn draw_model(category: usize, rng: &mut impl Rng) -> u16 {
    let weights = MODELS.map(|(_, of)| f64::from(u8::from(of == category)));
    pick(&weights, rng) as u16
}

/// Lays the arrivals anew over the same span, at a rate that wanders.
fn wander(workload: &mut Workload, sigma: f64, seed: Seed) {
    let span_s = workload.arrival_span_s();
    let shape = Shape {
        profile: None,
        sigma,
        correlation: RATE_CORRELATION,
    };
    let mut rng = seed.stream("arrivals", 1);
    let mut times = Rate::new(span_s, &shape, &mut rng).draw(workload.jobs.len(), &mut rng);
    fit_span(&mut times, span_s);
    for (job, time) in workload.jobs.iter_mut().zip(times) {
        job.submit = Time::from_secs_f64(time);
    }
}

#[cfg(test)]
#[path = "sia_tests.rs"]
mod tests;
