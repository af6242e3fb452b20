//! Synergy's experiments: Philly's gangs, Gavel's run times, ten measured models that differ in how many CPU cores and
//! how much host memory they can use, on servers of 8 GPUs, 24 cores and 500 GiB.
//!
//! # Source
//! Mohan et al., OSDI 2022, and its released simulator (MIT): gangs of Philly clamped to 1, 2, 4, 8, 16 (others count as
//! 1); run time by Gavel's law; a model's family by deficit round-robin, so that the split holds at every moment; Poisson
//! arrivals or all jobs at once. Best request and speed at it: the released profiles. Which model within a family:
//! equally likely, *assumed*. A run time is that at 3 cores and 62.5 GiB per GPU, the paper's proportional share; what a
//! job makes of other shares is the model's measured surface, which is part of its class.

use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources,
};
use pleach_scheduler::physics::sensitivity::Sensitivity;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{ConfigError, Time};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::gavel::draw_run_time_s;
use super::poisson::set_arrivals;
use super::profile_config::ProfileConfig;
use super::site::{capacity, holds, require_locality, tenants};
use super::{limits, pick, require, unit};
use crate::Error;
use crate::seed::Seed;
use crate::{JobSpec, NUM_JOBS_MAX, Outcome, RUN_TIME_S_MAX, Workload};

settings! {
    /// Parameters of `synergy-multi` and `synergy-single`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SynergyConfig {
        /// Jobs to draw, 1 to 10,000,000.
        pub num_jobs: usize = 1000, in 1..=NUM_JOBS_MAX;
        /// Servers of eight GPUs, 1 to 100,000; 16 and 64 in the paper.
        pub num_nodes: u32 = 16, in 1..=100_000;
        /// CPU cores of a server, 8 to 1000; 24 in the paper, with variants of 32, 40 and 48.
        pub cpu_cores: f64 = 24.0, in 8.0..=1000.0;
        /// Servers in each rack, 1 or more.
        pub nodes_per_rack: u32 = 16, in 1..;
        /// Work over capacity between the first and the last arrival, 0.001 to 100.
        pub load: f64 = 0.8, in 0.001..=100.0;
        /// Arrival rate, as in the paper's sweeps; overrides the load.
        pub jobs_per_hour: Option<f64> = None, in 1e-3..=1e6;
        /// When jobs come.
        pub arrivals: SynergyArrivals = SynergyArrivals::Dynamic;
        /// Share of jobs on image models, 0 or more; the three shares are taken relative to their sum.
        pub image: f64 = 20.0, in 0.0..=1e6;
        /// Share of jobs on speech models.
        pub speech: f64 = 10.0, in 0.0..=1e6;
        /// Share of jobs on language models.
        pub language: f64 = 70.0, in 0.0..=1e6;
        /// What jobs ask for.
        pub request: SynergyRequest = SynergyRequest::Proportional;
        /// Longest run time, s, at least 2,000: the law is cut there, without a pile-up. The default keeps all of it.
        pub run_time_s_max: f64 = 600_000.0, in 2000.0..=RUN_TIME_S_MAX;
        /// Whether jobs carry a time limit.
        pub user_limits: bool = true;
        /// What a loose placement costs; nothing in the released simulator.
        pub locality: LocalityFactors = LocalityFactors::NONE;
    }
}

/// When jobs come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SynergyArrivals {
    /// A Poisson process.
    #[default]
    Dynamic,
    /// All at time 0, to measure the makespan; the load then means nothing.
    Static,
}

/// What jobs ask for per GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SynergyRequest {
    /// An eighth of a server for each GPU.
    #[default]
    Proportional,
    /// The least with which the model runs fastest.
    Best,
}

const GPUS_PER_NODE: u32 = 8;
const NODE_MEMORY_GIB: f64 = 500.0;
const NODE_STORAGE_MB_S: f64 = 500.0;

/// A measured model.
struct Model {
    name: &'static str,
    /// 0 image, 1 speech, 2 language.
    family: usize,
    /// CPU cores and host memory, GiB, per GPU of the best request.
    best: (f64, f64),
}

#[rustfmt::skip]
const MODELS: [Model; 10] = [
    Model { name: "alexnet", family: 0, best: (12.0, 125.0) },
    Model { name: "resnet18", family: 0, best: (9.0, 62.5) },
    Model { name: "resnet50", family: 0, best: (4.0, 62.5) },
    Model { name: "mobilenet", family: 0, best: (6.0, 62.5) },
    Model { name: "shufflenet", family: 0, best: (12.0, 125.0) },
    Model { name: "m5", family: 1, best: (6.0, 187.5) },
    Model { name: "deepspeech", family: 1, best: (3.0, 62.5) },
    Model { name: "gnmt", family: 2, best: (1.0, 20.83) },
    Model { name: "transformer", family: 2, best: (1.0, 20.83) },
    Model { name: "lstm", family: 2, best: (1.0, 20.83) },
];

impl SynergyConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.check_at("generator", "see docs/workloads.md")?;
        let is_some = self.image + self.speech + self.language > 0.0;
        require(
            "image",
            self.image,
            is_some,
            "shares of which at least one is above 0",
        )?;
        require_locality(self.locality)
    }

    fn cluster(&self) -> ClusterSpec {
        let mut cluster = ClusterSpec {
            gpu_types: vec![GpuTypeSpec {
                name: "V100".into(),
                memory_gib: 32.0,
                mig: None,
            }],
            node_groups: vec![NodeGroup {
                count: self.num_nodes,
                gpus_per_node: GPUS_PER_NODE,
                gpu_type: "V100".into(),
                nodes_per_rack: self.nodes_per_rack,
                cpu_cores: self.cpu_cores,
                memory_gib: NODE_MEMORY_GIB,
                storage_mb_s: NODE_STORAGE_MB_S,
                ..NodeGroup::default()
            }],
            borrowing: true,
            ..ClusterSpec::default()
        };
        cluster.tenants = tenants(&[1.0], capacity(&cluster));
        cluster
    }

    fn resources(&self, model: &Model) -> Resources {
        let gpus = f64::from(GPUS_PER_NODE);
        let (cpu_cores, memory_gib) = match self.request {
            SynergyRequest::Proportional => (self.cpu_cores / gpus, NODE_MEMORY_GIB / gpus),
            SynergyRequest::Best => model.best,
        };
        Resources {
            cpu_cores,
            memory_gib,
            ..Resources::WHOLE_GPU
        }
    }
}

/// Philly's gangs, clamped: (gang, jobs).
fn gangs(only_single: bool) -> Vec<(u32, f64)> {
    if only_single {
        return vec![(1, 1.0)];
    }
    let mut clamped: Vec<(u32, f64)> = [1, 2, 4, 8, 16].map(|gang| (gang, 0.0)).to_vec();
    for demand in &ProfileConfig::named("philly-like").profile.works[0].mix {
        let row = clamped
            .iter()
            .position(|(size, _)| *size == demand.gpus)
            .unwrap_or(0);
        clamped[row].1 += demand.jobs;
    }
    clamped
}

/// Families by deficit: the next job goes to the family that is furthest behind its share; ties to the first.
struct Deficits {
    shares: [f64; 3],
    given: [f64; 3],
}

impl Deficits {
    fn next(&mut self) -> usize {
        let total: f64 = self.given.iter().sum::<f64>() + 1.0;
        let behind = |family: usize| self.shares[family] * total - self.given[family];
        let mut next = 0;
        for family in 1..3 {
            if behind(family) > behind(next) {
                next = family;
            }
        }
        self.given[next] += 1.0;
        next
    }
}

fn draw_model(family: usize, rng: &mut impl Rng) -> usize {
    let members = MODELS.iter().enumerate();
    let members: Vec<usize> = members
        .filter(|(_, model)| model.family == family)
        .map(|(index, _)| index)
        .collect();
    members[(unit(rng) * members.len() as f64) as usize]
}

pub(super) fn generate(parameters: &SynergyConfig, only_single: bool, seed: Seed) -> Result<Workload, Error> {
    let cluster = parameters.cluster();
    let classes: Vec<ModelClass> = MODELS
        .iter()
        .map(|model| {
            Ok(ModelClass {
                name: model.name.into(),
                speed: vec![1.0],
                locality: parameters.locality,
                sensitivity: Some(Sensitivity::from_name(model.name)?),
                ..ModelClass::default()
            })
        })
        .collect::<Result<_, ConfigError>>()?;
    let sum = parameters.image + parameters.speech + parameters.language;
    let mut families = Deficits {
        shares: [parameters.image, parameters.speech, parameters.language].map(|share| share / sum),
        given: [0.0; 3],
    };
    let gangs = gangs(only_single);
    let mut rng = seed.stream("jobs", 0);
    let mut jobs = Vec::with_capacity(parameters.num_jobs);
    for position in 0..parameters.num_jobs {
        let class = draw_model(families.next(), &mut rng);
        let model = &MODELS[class];
        let resources = parameters.resources(model);
        // Gangs that the cluster cannot hold with this request are drawn again.
        let weights: Vec<f64> = gangs
            .iter()
            .map(|(gang, jobs)| {
                if holds(&cluster, &classes[class], *gang, &resources) {
                    *jobs
                } else {
                    0.0
                }
            })
            .collect();
        Error::refuse_if(
            weights.iter().all(|weight| *weight == 0.0),
            "generator.cpu_cores",
            parameters.cpu_cores,
            format_args!("at least {} cores for {}", resources.cpu_cores, model.name),
            "raise it, or use request = \"proportional\"",
        )?;
        let gang = gangs[pick(&weights, &mut rng)].0;
        let run_time_s = draw_run_time_s(parameters.run_time_s_max, &mut rng);
        let factor = limits::draw_factor(&mut rng);
        jobs.push(JobSpec {
            id: position.to_string(),
            submit: Time::ZERO,
            num_gpus: gang,
            run_time_s,
            estimate_s: parameters
                .user_limits
                .then(|| limits::limit_s(run_time_s, factor)),
            tenant: 0,
            class: class as u16,
            user: None,
            outcome: Outcome::Completed,
            resources,
            observed: None,
        });
    }
    let name = if only_single {
        "synergy-single"
    } else {
        "synergy-multi"
    };
    let mut workload = Workload {
        name: name.into(),
        cluster,
        classes,
        jobs,
    };
    if parameters.arrivals == SynergyArrivals::Dynamic {
        set_arrivals(&mut workload, parameters.jobs_per_hour, parameters.load, seed)?;
    }
    Ok(workload)
}

#[cfg(test)]
#[path = "synergy_tests.rs"]
mod tests;
