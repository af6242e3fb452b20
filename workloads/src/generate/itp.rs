//! A workload like Microsoft's internal training clusters of 2021 (ITP): hours-long jobs, mostly one GPU, little tail.
//!
//! The lists name no users; what comes in a row is the same gang size within a minute on one cluster, with similar run
//! times.
//!
//! Not here: tenants, users and final states (not in the lists), and how differently the nine clusters are used.

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, Resources};
use serde::{Deserialize, Serialize};

use super::arrivals::Shape;
use super::itp_tables::{
    GANG_RUN_LENGTH_MEAN, GANGS, HOURS, RUN_GAPS_S, RUN_LENGTHS, RUN_TIME_CORRELATION, RUN_TIMES, WEEKDAYS,
};
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::Outcomes;
use super::quantiles::Curve;
use super::site::{any_class, gang_max, require_locality, require_site};
use super::{require, require_common};
use crate::Error;
use crate::Workload;
use crate::seed::Seed;

/// Parameters of `itp-like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ItpLikeConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes, 1 to 100,000. The sizes of the clusters are not published; nothing queueing, they used 865 GPUs.
    pub num_nodes: u32,
    /// GPUs in each node, 1 to 64.
    pub gpus_per_node: u32,
    /// Nodes in each rack, 1 or more.
    pub nodes_per_rack: u32,
    /// Work over capacity between the first and the last arrival, 0.001 to 100.
    pub load: f64,
    /// Largest gang; larger ones are drawn again. The cluster's size where absent.
    pub gang_max: Option<u32>,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The default keeps all of it.
    pub run_time_s_max: f64,
    /// Whether the arrival rate follows the hour and the weekday.
    pub daily_profile: bool,
    /// Whether jobs come in runs and the rate wanders; false gives one Poisson arrival per job.
    pub bursty: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// What a loose placement costs.
    pub locality: LocalityFactors,
}

impl Default for ItpLikeConfig {
    fn default() -> ItpLikeConfig {
        ItpLikeConfig {
            num_jobs: 1000,
            num_nodes: 16,
            gpus_per_node: 8,
            nodes_per_rack: 8,
            load: 0.8,
            gang_max: None,
            run_time_s_max: 5_184_000.0,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// Spread and hourly correlation of the wandering rate, set so that the hourly counts of a workload of the lists' size
/// have their variance over mean (57) and lag-1 correlation (0.44).
const RATE_SIGMA: f64 = 0.87;
const RATE_CORRELATION: f64 = 0.6;
/// Longest run in the lists, jobs.
const RUN_LENGTH_MAX: usize = 226;

impl ItpLikeConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        let gpus = self.gpus_per_node;
        require("gpus_per_node", gpus, (1..=64).contains(&gpus), "1 to 64")?;
        require("gang_max", 0, self.gang_max != Some(0), "1 or more")?;
        require_locality(self.locality)
    }

    fn kinds(&self, cluster: &ClusterSpec) -> Vec<Kind> {
        let largest = gang_max(cluster, self.gang_max);
        let gangs = GANGS.into_iter().filter(|(gang, _)| *gang <= largest);
        let kind = |(gang, jobs): (u32, u32)| Kind {
            jobs: jobs.into(),
            num_gpus: gang,
            resources: Resources::WHOLE_GPU,
            class: 0,
            run_times: Curve::of(&RUN_TIMES, gang),
            outcomes: Outcomes::Unknown,
            lengths: match (self.bursty, gang) {
                (false, _) => Lengths::One,
                (true, 1) => Lengths::Table(&RUN_LENGTHS),
                (true, _) => Lengths::Geometric(GANG_RUN_LENGTH_MEAN),
            },
            tenants: vec![1.0],
        };
        gangs.map(kind).collect()
    }
}

pub(super) fn generate(config: &ItpLikeConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = ClusterSpec::uniform(config.num_nodes, config.gpus_per_node, config.nodes_per_rack);
    let habits = Habits {
        users: (0, 0.0),
        run_time_correlation: RUN_TIME_CORRELATION,
        length_max: RUN_LENGTH_MAX.min((config.num_jobs / 10).max(1)),
        run_time_s_max: config.run_time_s_max,
    };
    let mix = Mix::new(config.kinds(&cluster), habits);
    let plan = Plan {
        name: "itp-like",
        num_jobs: config.num_jobs,
        load: config.load,
        user_limits: config.user_limits,
        shape: Shape {
            profile: config.daily_profile.then_some((&HOURS, &WEEKDAYS)),
            sigma: if config.bursty { RATE_SIGMA } else { 0.0 },
            correlation: RATE_CORRELATION,
        },
        gaps_s: &RUN_GAPS_S,
    };
    let classes = vec![any_class(&cluster, config.locality)];
    lay_out(&plan, &mix, cluster, classes, seed)
}

#[cfg(test)]
#[path = "itp_tests.rs"]
mod tests;
