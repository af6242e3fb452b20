//! A workload like Alibaba's shared GPU cluster of 2023 (openb, the list of FGD): shares of a GPU in thousandths, CPU and
//! memory beside them, pods that only run on some GPU types.
//!
//! A model class is a set of GPU types that a pod accepts, all of them equally fast (*assumed*; two models are not
//! disclosed). Requests that no node of the scaled cluster could hold are drawn again.
//!
//! Not here: pods without GPUs, tenants and users (the list has service levels only), final states (the list is a
//! snapshot).

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use serde::{Deserialize, Serialize};

use super::arrivals::Shape;
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::openb_tables::{CONSTRAINTS, HOURS, MACHINES, PODS, RUN_TIMES, UNCONSTRAINED};
use super::outcomes::Outcomes;
use super::quantiles::Curve;
use super::site::{any_class, kinds_that_fit, require_locality, require_site, scaled_cluster};
use super::{require, require_common};
use crate::Error;
use crate::Workload;
use crate::seed::Seed;

/// Parameters of `openb-like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenbLikeConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes, 1 to 100,000, in the proportions of the published machine list, which has 1,213 with GPUs (6,212 GPUs).
    pub num_nodes: u32,
    /// Nodes in each rack, 1 or more.
    pub nodes_per_rack: u32,
    /// Work over capacity between the first and the last arrival, 0.001 to 100; a share of a GPU counts as such.
    pub load: f64,
    /// Share of jobs that accept some GPU types only, 0 to 1; 0.34 in the list `gpuspec33`, 0 in the default list. The
    /// mix of types is that of `gpuspec33`.
    pub typed_share: f64,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The default is 30 days; the
    /// longest pods ran 145 days.
    pub run_time_s_max: f64,
    /// Whether the arrival rate follows the hour.
    pub daily_profile: bool,
    /// Whether the rate wanders; false gives Poisson arrivals.
    pub bursty: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// What a loose placement costs.
    pub locality: LocalityFactors,
}

impl Default for OpenbLikeConfig {
    fn default() -> OpenbLikeConfig {
        OpenbLikeConfig {
            num_jobs: 1000,
            num_nodes: 24,
            nodes_per_rack: 16,
            load: 0.8,
            typed_share: 0.34,
            run_time_s_max: 2_592_000.0,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// Spread and hourly correlation of the wandering rate, set so that the hourly counts of a workload with the list's 10
/// jobs/h have its variance over mean (5.7) and lag-1 correlation (0.66).
const RATE_SIGMA: f64 = 0.5;
const RATE_CORRELATION: f64 = 0.8;
/// The weekday of the list's days is not known.
const WEEKDAYS: [f64; 7] = [1.0; 7];
/// Share of the pods of `gpuspec33` that carry a constraint: 2,388 of 7,064.
const TYPED_SHARE: f64 = 0.338;

impl OpenbLikeConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        let share = self.typed_share;
        require("typed_share", share, (0.0..=1.0).contains(&share), "0 to 1")?;
        require_locality(self.locality)
    }

    /// Each request with each set of types, in proportion to both.
    fn kinds(&self, sets: &[[f64; 3]]) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for (num_gpus, gpu_milli, cpu_cores, memory_gib, pods) in PODS {
            let column = column_of(num_gpus, gpu_milli);
            for (class, shares) in sets.iter().enumerate() {
                if shares[column] == 0.0 {
                    continue;
                }
                kinds.push(Kind {
                    jobs: f64::from(pods) * shares[column],
                    num_gpus,
                    resources: Resources {
                        gpu_milli,
                        gpu_memory_gib: 0.0,
                        cpu_cores,
                        memory_gib,
                        ..Resources::WHOLE_GPU
                    },
                    class: class as u16,
                    run_times: Curve::of(&RUN_TIMES, column as u32),
                    outcomes: Outcomes::Unknown,
                    lengths: Lengths::One,
                    tenants: vec![1.0],
                });
            }
        }
        kinds
    }

    /// The classes that some node of the cluster can run, any type first, and the share of each among pods with a share
    /// of a GPU, one GPU and more.
    fn classes(&self, cluster: &ClusterSpec) -> (Vec<ModelClass>, Vec<[f64; 3]>) {
        let pods =
            |column: usize| -> f64 { CONSTRAINTS.iter().map(|(_, pods)| f64::from(pods[column])).sum() };
        let published = [0, 1, 2].map(|column| {
            let typed = pods(column);
            (typed, typed + f64::from(UNCONSTRAINED[column]))
        });
        // The share of each column moves with the share of all.
        let typed = published.map(|(typed, all)| (typed / all * self.typed_share / TYPED_SHARE).min(1.0));
        let any = any_class(cluster, self.locality);
        let (mut classes, mut shares) = (vec![any], vec![typed.map(|typed| 1.0 - typed)]);
        for (types, pods) in CONSTRAINTS {
            let accepts = |name: &str| types.split(' ').any(|accepted| accepted == name);
            let speed: Vec<f64> = cluster
                .gpu_types
                .iter()
                .map(|gpu| f64::from(u8::from(accepts(&gpu.name))))
                .collect();
            if self.typed_share == 0.0 || speed.iter().all(|speed| *speed == 0.0) {
                continue;
            }
            classes.push(ModelClass {
                name: types.replace(' ', "|"),
                speed,
                locality: self.locality,
                ..ModelClass::default()
            });
            shares
                .push([0, 1, 2].map(|column| typed[column] * f64::from(pods[column]) / published[column].0));
        }
        (classes, shares)
    }
}

/// Column of a table: a share of a GPU, one GPU, more.
fn column_of(num_gpus: u32, gpu_milli: u16) -> usize {
    match (num_gpus, gpu_milli) {
        (1, 1000) => 1,
        (1, _) => 0,
        _ => 2,
    }
}

pub(super) fn generate(config: &OpenbLikeConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = scaled_cluster(&MACHINES, config.num_nodes, config.nodes_per_rack);
    let (classes, shares) = config.classes(&cluster);
    let habits = Habits {
        users: (0, 0.0),
        run_time_correlation: 0.0,
        length_max: 1,
        run_time_s_max: config.run_time_s_max,
    };
    let mix = Mix::new(kinds_that_fit(&cluster, &classes, config.kinds(&shares)), habits);
    let plan = Plan {
        name: "openb-like",
        num_jobs: config.num_jobs,
        load: config.load,
        user_limits: config.user_limits,
        shape: Shape {
            profile: config.daily_profile.then_some((&HOURS, &WEEKDAYS)),
            sigma: if config.bursty { RATE_SIGMA } else { 0.0 },
            correlation: RATE_CORRELATION,
        },
        gaps_s: &[],
    };
    lay_out(&plan, &mix, cluster, classes, seed)
}

#[cfg(test)]
#[path = "openb_tests.rs"]
mod tests;
