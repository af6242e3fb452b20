//! A workload like Microsoft's Philly, for a cluster of any size.
//!
//! Jobs come in runs: one user submits several of the same gang size a few seconds apart, with similar run times. A run
//! draws its gang size from Philly's mix, its tenant from that tenant's share of such gangs, and its run times from
//! Philly's quantiles for the gang size. Starts of runs follow the hour, the weekday and a wandering rate.

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, Resources};
use serde::{Deserialize, Serialize};

use super::arrivals::Shape;
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::Outcomes;
use super::philly_tables::{
    GANG_RUN_LENGTH_MEAN, GANGS, HOURS, OUTCOMES, RUN_GAPS_S, RUN_LENGTHS, RUN_TIME_CORRELATION, RUN_TIMES,
    TENANTS, WEEKDAYS,
};
use super::quantiles::Curve;
use super::site::{
    any_class, capacity, gang_max, require_locality, require_site, tenants, tenants_with_room,
};
use super::{require, require_common};
use crate::Error;
use crate::Workload;
use crate::seed::Seed;

/// Parameters of `philly-like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PhillyLikeConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes, 1 to 100,000. Philly had about 311 nodes' worth of eight GPUs.
    pub num_nodes: u32,
    /// GPUs in each node, 1 to 64.
    pub gpus_per_node: u32,
    /// Nodes in each rack, 1 or more.
    pub nodes_per_rack: u32,
    /// Work over capacity between the first and the last arrival, 0.001 to 100. Philly offered 0.64.
    pub load: f64,
    /// Tenants, 1 to 11, largest first.
    pub num_tenants: usize,
    /// Whether tenants may use more than their quota while others leave GPUs idle.
    pub borrowing: bool,
    /// Largest gang; larger ones are drawn again. The cluster's size where absent.
    pub gang_max: Option<u32>,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The default keeps all of it.
    pub run_time_s_max: f64,
    /// Longest run of one user's jobs; never more than a tenth of the jobs.
    pub run_length_max: u32,
    /// Whether the arrival rate follows the hour and the weekday.
    pub daily_profile: bool,
    /// Whether jobs come in runs and the rate wanders; false gives one Poisson arrival per job.
    pub bursty: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// What a loose placement costs.
    pub locality: LocalityFactors,
}

impl Default for PhillyLikeConfig {
    fn default() -> PhillyLikeConfig {
        PhillyLikeConfig {
            num_jobs: 1000,
            num_nodes: 16,
            gpus_per_node: 8,
            nodes_per_rack: 8,
            load: 0.8,
            num_tenants: 5,
            borrowing: true,
            gang_max: None,
            run_time_s_max: 5_184_000.0,
            run_length_max: 380,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// Spread and hourly correlation of the wandering rate, set so that the hourly counts of a Philly-sized workload have
/// the trace's variance over mean (149) and lag-1 correlation (0.42).
const RATE_SIGMA: f64 = 1.3;
const RATE_CORRELATION: f64 = 0.2;

/// Users in each tenant (215 users in ten virtual clusters) and how unequal they are.
/// # Source
/// A Zipf law with exponent 1.1 to 1.3 fits the users of Helios; *assumed* for each tenant here.
const USERS: (usize, f64) = (20, 1.2);

impl PhillyLikeConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        let gpus = self.gpus_per_node;
        require("gpus_per_node", gpus, (1..=64).contains(&gpus), "1 to 64")?;
        let tenants = self.num_tenants;
        require(
            "num_tenants",
            tenants,
            (1..=TENANTS.len()).contains(&tenants),
            "1 to 11",
        )?;
        require("gang_max", 0, self.gang_max != Some(0), "1 or more")?;
        let length = self.run_length_max;
        require("run_length_max", length, length > 0, "1 or more")?;
        require_locality(self.locality)
    }

    fn cluster(&self) -> ClusterSpec {
        let mut cluster = ClusterSpec::uniform(self.num_nodes, self.gpus_per_node, self.nodes_per_rack);
        let nodes: Vec<f64> = TENANTS[..self.num_tenants]
            .iter()
            .map(|tenant| tenant.nodes.into())
            .collect();
        cluster.tenants = tenants(&nodes, capacity(&cluster));
        cluster.borrowing = self.borrowing;
        cluster
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
            outcomes: outcomes(gang),
            lengths: match (self.bursty, gang) {
                (false, _) => Lengths::One,
                (true, 1) => Lengths::Table(&RUN_LENGTHS),
                (true, _) => Lengths::Geometric(GANG_RUN_LENGTH_MEAN),
            },
            tenants: tenants_with_room(cluster, gang, |tenant| {
                TENANTS[tenant].jobs[column_of(gang)].into()
            }),
        };
        gangs.map(kind).collect()
    }
}

fn outcomes(gang: u32) -> Outcomes {
    let row = OUTCOMES.iter().find(|row| gang <= row.0);
    let (_, killed, failed) = row.copied().unwrap_or(OUTCOMES[OUTCOMES.len() - 1]);
    Outcomes::Shares { killed, failed }
}

/// Column of a table by gang size: 1, 2-3, 4-7, 8-15, 16 and more.
pub(super) fn column_of(gang: u32) -> usize {
    match gang {
        0..=1 => 0,
        2..=3 => 1,
        4..=7 => 2,
        8..=15 => 3,
        _ => 4,
    }
}

pub(super) fn generate(config: &PhillyLikeConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = config.cluster();
    let habits = Habits {
        users: USERS,
        run_time_correlation: RUN_TIME_CORRELATION,
        length_max: (config.run_length_max as usize).min((config.num_jobs / 10).max(1)),
        run_time_s_max: config.run_time_s_max,
    };
    let mix = Mix::new(config.kinds(&cluster), habits);
    let plan = Plan {
        name: "philly-like",
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
#[path = "philly_tests.rs"]
mod tests;
