//! A workload like Alibaba's PAI of 2020: many small tasks, most of them on a share of a GPU, on machines of five kinds.
//!
//! Not here: how a task is split into instances on several nodes, GPU-type constraints, how fast the types are relative
//! to each other (all equally fast, *assumed*), CPU and memory that tasks ask for, final states.

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, Resources};
use serde::{Deserialize, Serialize};

use super::arrivals::Shape;
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::Outcomes;
use super::pai_tables::{DEMANDS, HOURS, MACHINES, RUN_TIMES, USERS};
use super::quantiles::Curve;
use super::require_common;
use super::site::{any_class, kinds_that_fit, require_locality, require_site, scaled_cluster};
use crate::Error;
use crate::Workload;
use crate::seed::Seed;

/// Parameters of `pai-share`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PaiShareConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes, 1 to 100,000, in the proportions of the published machine list, which has 1,814 with GPUs.
    pub num_nodes: u32,
    /// Nodes in each rack, 1 or more.
    pub nodes_per_rack: u32,
    /// Work over capacity between the first and the last arrival, 0.001 to 100; a share of a GPU counts as such.
    pub load: f64,
    /// Whether jobs ask for shares of a GPU; false gives each of them a whole one.
    pub sharing: bool,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The source cut at 48 h.
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

impl Default for PaiShareConfig {
    fn default() -> PaiShareConfig {
        PaiShareConfig {
            num_jobs: 1000,
            num_nodes: 36,
            nodes_per_rack: 16,
            load: 0.8,
            sharing: true,
            run_time_s_max: 172_800.0,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// Spread and hourly correlation of the wandering rate, set so that the hourly counts of a workload with the sample's 39
/// jobs/h have its variance over mean (8.9) and lag-1 correlation (0.43).
const RATE_SIGMA: f64 = 0.39;
const RATE_CORRELATION: f64 = 0.65;
/// The weekday of the sample's days is not known.
const WEEKDAYS: [f64; 7] = [1.0; 7];

impl PaiShareConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        require_locality(self.locality)
    }

    fn kinds(&self) -> Vec<Kind> {
        let kind = |(num_gpus, gpu_milli, jobs): (u32, u16, f64)| Kind {
            jobs,
            num_gpus,
            resources: Resources {
                gpu_milli: if self.sharing { gpu_milli } else { 1000 },
                ..Resources::WHOLE_GPU
            },
            class: 0,
            run_times: Curve::of(&RUN_TIMES, num_gpus),
            outcomes: Outcomes::Unknown,
            lengths: Lengths::One,
            tenants: vec![1.0],
        };
        DEMANDS.into_iter().map(kind).collect()
    }
}

pub(super) fn generate(config: &PaiShareConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster: ClusterSpec = scaled_cluster(&MACHINES, config.num_nodes, config.nodes_per_rack);
    let classes = vec![any_class(&cluster, config.locality)];
    let habits = Habits {
        users: USERS,
        run_time_correlation: 0.0,
        length_max: 1,
        run_time_s_max: config.run_time_s_max,
    };
    let mix = Mix::new(kinds_that_fit(&cluster, &classes, config.kinds()), habits);
    let plan = Plan {
        name: "pai-share",
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
#[path = "pai_tests.rs"]
mod tests;
