//! A cluster like Alibaba's of 2025 and 2026: guaranteed and spot jobs of many organisations on six GPU types, among them thousands
//! of small ones for inference, where six jobs in a hundred have four fifths of the GPU time.
//!
//! Not here: which jobs are services; memory and cores that jobs ask for; that spot jobs can be stopped (they are a tenant without
//! a quota).

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources, TenantSpec};
use pleach_scheduler::physics::links::Fabric;
use serde::{Deserialize, Serialize};

use super::alibaba_tables::{GANGS, HOURS, NODES, ORGANISATIONS, SPOT_PART, TYPES, WEEKDAYS, run_times};
use super::arrivals::Shape;
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::Outcomes;
use super::site::{
    any_class, capacity, gang_max, kinds_that_fit, require_locality, require_site, scaled_cluster,
};
use super::{require, require_common};
use crate::Error;
use crate::Workload;
use crate::import::share_out;
use crate::plans::{Gang, Gpu, Model, Trained, Training, class_of};
use crate::seed::Seed;

/// Parameters of `alibaba-2026`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlibabaConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes, in the proportions of the published 4,272, 1 to 100,000.
    pub num_nodes: u32,
    /// Nodes in each rack, 1 or more.
    pub nodes_per_rack: u32,
    /// Work over capacity between the first and the last arrival, 0.001 to 100; 0.86 is the published rate.
    pub load: f64,
    /// Largest gang; larger ones are drawn again. The cluster's size where absent.
    pub gang_max: Option<u32>,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The default keeps all 184 days.
    pub run_time_s_max: f64,
    /// Whether the arrival rate follows the hour.
    pub daily_profile: bool,
    /// Whether the rate wanders; false gives one Poisson arrival per job.
    pub bursty: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// What a loose placement costs models of which no plan is known.
    pub locality: LocalityFactors,
}

impl Default for AlibabaConfig {
    fn default() -> AlibabaConfig {
        AlibabaConfig {
            num_jobs: 1000,
            num_nodes: 854,
            nodes_per_rack: 32,
            load: 0.86,
            gang_max: None,
            run_time_s_max: 15_897_600.0,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// Spread and hourly correlation of the wandering rate: hourly arrivals have variance over mean 90 and lag-1 correlation 0.61.
const RATE_SIGMA: f64 = 0.75;
const RATE_CORRELATION: f64 = 0.7;
/// What a gang gets between nodes and inside, GB/s: nodes of one GPU allow one NIC to all nodes, which has here what eight of the
/// A100 nodes have together; 160 is what NVLink of an H800 was measured to reach.
const NIC_GB_PER_S: f64 = 200.0;
const INSIDE_GB_PER_S: f64 = 160.0;

impl AlibabaConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        require("gang_max", 0, self.gang_max != Some(0), "1 or more")?;
        require_locality(self.locality)
    }

    fn cluster(&self) -> Result<ClusterSpec, Error> {
        let mut cluster = scaled_cluster(&NODES, self.num_nodes, self.nodes_per_rack);
        let mut fabric = Fabric::from_name("alibaba-hpn")?;
        fabric.between.nics_per_node = 1;
        fabric.between.nic_gb_per_s = NIC_GB_PER_S;
        fabric.inside.ring_gb_per_s = INSIDE_GB_PER_S;
        fabric.inside.switch = None;
        cluster.fabric = Some(fabric);
        let shares: Vec<f64> = ORGANISATIONS.iter().map(|(_, share, _)| *share).collect();
        let quotas = share_out(&shares, capacity(&cluster));
        let tenants = ORGANISATIONS
            .iter()
            .zip(quotas)
            .map(|((name, ..), quota_gpus)| TenantSpec {
                name: (*name).into(),
                quota_gpus,
            });
        let spot = TenantSpec {
            name: "spot".into(),
            quota_gpus: 0,
        };
        cluster.tenants = tenants.chain([spot]).collect();
        Ok(cluster)
    }

    /// Classes, and kinds that have them: one for each type and gang, guaranteed and spot.
    fn kinds(&self, cluster: &ClusterSpec) -> Result<(Vec<ModelClass>, Vec<Kind>), Error> {
        let largest = gang_max(cluster, self.gang_max);
        let (mut classes, mut kinds) = (Vec::new(), Vec::new());
        for (of_type, (gpu_type, jobs)) in TYPES.iter().enumerate() {
            let Some(at) = cluster.gpu_types.iter().position(|gpu| gpu.name == *gpu_type) else {
                continue;
            };
            for (column, ((gang, is_half), jobs)) in GANGS.into_iter().zip(jobs).enumerate() {
                if *jobs == 0 || gang > largest {
                    continue;
                }
                let share = if is_half { " half" } else { "" };
                let model = model_of(gpu_type, gang);
                let name = format!("{gpu_type} x{gang}{share}: {model}");
                classes.push(self.class(name, model, gang, at, cluster)?);
                for is_spot in [false, true] {
                    let part = if is_spot { SPOT_PART } else { 1.0 - SPOT_PART };
                    kinds.push(Kind {
                        jobs: f64::from(*jobs) * part,
                        num_gpus: gang,
                        resources: Resources {
                            gpu_milli: if is_half { 500 } else { 1000 },
                            ..Resources::WHOLE_GPU
                        },
                        class: (classes.len() - 1) as u16,
                        run_times: run_times(of_type, column, is_spot),
                        outcomes: Outcomes::Unknown,
                        lengths: Lengths::One,
                        tenants: tenants(of_type, is_spot),
                    });
                }
            }
        }
        let kinds = kinds_that_fit(cluster, &classes, kinds);
        Ok((classes, kinds))
    }

    /// The class of a model on its type alone, by its plan where it has one there.
    fn class(
        &self,
        name: String,
        model: &str,
        gang: u32,
        at: usize,
        cluster: &ClusterSpec,
    ) -> Result<ModelClass, Error> {
        // Of a type that nobody names no plan is known.
        let plan = Gpu::of(&cluster.gpu_types[at].name).and_then(|_| plan_of(model));
        let mut class = match plan {
            Some((model, trained, batch)) => {
                let training = Training {
                    trained,
                    ..Training::all(Model::from_name(model)?, batch)
                };
                let mut alone = cluster.clone();
                alone
                    .gpu_types
                    .retain(|gpu| gpu.name == cluster.gpu_types[at].name);
                class_of(&name, &Gang::new(training, gang), &alone)?
            }
            None => ModelClass {
                name,
                ..any_class(cluster, self.locality)
            },
        };
        class.locality = self.locality;
        class.speed = vec![0.0; cluster.gpu_types.len()];
        class.speed[at] = 1.0;
        Ok(class)
    }
}

/// Guaranteed jobs of a type go to those who use it; spot jobs are a tenant of their own, the last.
fn tenants(of_type: usize, is_spot: bool) -> Vec<f64> {
    let weight = |(_, share, types): &(&str, f64, [f64; 6])| share * types[of_type];
    let guaranteed = ORGANISATIONS.iter().map(weight);
    let guaranteed = guaranteed.map(|weight| if is_spot { 0.0 } else { weight });
    guaranteed.chain([f64::from(u8::from(is_spot))]).collect()
}

/// What jobs of a type train or serve, by gang. *Assumed*: the list does not say; small cards serve small models.
fn model_of(gpu_type: &str, gang: u32) -> &'static str {
    match (gpu_type, gang) {
        ("A10", 1) => "bert-base",
        ("A10", _) => "bert-large",
        ("GPU-series-1", _) => "sd2-unet",
        ("GPU-series-2", 1..=8) => "eval-70b",
        (_, 1) => "eval-7b",
        (_, 2..=4) => "llama-8b-lora",
        (_, 5..=16) => "llama-8b",
        (_, 17..=64) => "llama-13b",
        (_, 65..=128) => "mixtral-8x7b",
        _ => "llama-70b",
    }
}

/// The plan of a model: what of which is trained, and sequences of a step.
fn plan_of(model: &str) -> Option<(&'static str, Trained, u32)> {
    match model {
        "llama-8b-lora" => Some(("llama-8b", Trained::Adapters, 64)),
        "llama-8b" => Some(("llama-8b", Trained::All, 256)),
        "llama-13b" => Some(("llama-13b", Trained::All, 512)),
        "mixtral-8x7b" => Some(("mixtral-8x7b", Trained::All, 1024)),
        "llama-70b" => Some(("llama-70b", Trained::All, 1024)),
        _ => None,
    }
}

pub(super) fn generate(config: &AlibabaConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = config.cluster()?;
    let (classes, kinds) = config.kinds(&cluster)?;
    let habits = Habits {
        users: (0, 0.0),
        run_time_correlation: 0.0,
        length_max: 1,
        run_time_s_max: config.run_time_s_max,
    };
    let plan = Plan {
        name: "alibaba-2026",
        num_jobs: config.num_jobs,
        load: config.load,
        user_limits: config.user_limits,
        shape: Shape {
            profile: config.daily_profile.then_some((&HOURS, &WEEKDAYS)),
            sigma: if config.bursty { RATE_SIGMA } else { 0.0 },
            correlation: RATE_CORRELATION,
        },
        gaps_s: &[(1.0, 0.0)],
    };
    let mut workload = lay_out(&plan, &Mix::new(kinds, habits), cluster, classes, seed)?;
    workload.fill_class_facts(false);
    Ok(workload)
}

#[cfg(test)]
#[path = "alibaba_tests.rs"]
mod tests;
