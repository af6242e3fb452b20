//! A workload like SenseTime's Helios (cluster Venus): many gangs of eight and more, many short jobs, virtual clusters.
//!
//! Jobs come in runs as in `philly-like`, with Venus's laws: run times by gang size, CPU threads, virtual clusters, ends
//! that lean on the run time (failed jobs are short, jobs hit by a node failure long).
//!
//! Not here: jobs without GPUs, quotas that change from day to day, the memory that jobs use (not recorded).

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, Resources};
use serde::{Deserialize, Serialize};

use super::arrivals::Shape;
use super::helios_tables::{
    ENDS, GANG_RUN_LENGTH_MEAN, GANGS, HOURS, RUN_GAPS_S, RUN_LENGTHS, RUN_TIME_CORRELATION, RUN_TIMES,
    SHARES, TENANTS, THREADS, WEEKDAYS,
};
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::Outcomes;
use super::philly::column_of;
use super::quantiles::Curve;
use super::site::{
    Machines, any_class, capacity, gang_max, kinds_that_fit, require_locality, require_site, scaled_cluster,
    tenants, tenants_with_room,
};
use super::{require, require_common};
use crate::Error;
use crate::Workload;
use crate::seed::Seed;

/// Parameters of `helios-like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeliosLikeConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes of eight V100, 48 CPU threads and 376 GiB, 1 to 100,000. Venus had 133.
    pub num_nodes: u32,
    /// Nodes in each rack, 1 or more.
    pub nodes_per_rack: u32,
    /// Work over capacity between the first and the last arrival, 0.001 to 100. Venus offered 0.78.
    pub load: f64,
    /// Virtual clusters, 1 to 15, those with most jobs first.
    pub num_tenants: usize,
    /// Whether tenants may use more than their quota while others leave GPUs idle; on Helios they may not.
    pub borrowing: bool,
    /// Largest gang; larger ones are drawn again. The cluster's size where absent.
    pub gang_max: Option<u32>,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The default keeps all of it.
    pub run_time_s_max: f64,
    /// Whether the arrival rate follows the hour and the weekday.
    pub daily_profile: bool,
    /// Whether jobs come in runs and the rate wanders; false gives one Poisson arrival per job.
    pub bursty: bool,
    /// Whether jobs ask for CPU threads.
    pub cpu_requests: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// What a loose placement costs.
    pub locality: LocalityFactors,
}

impl Default for HeliosLikeConfig {
    fn default() -> HeliosLikeConfig {
        HeliosLikeConfig {
            num_jobs: 1000,
            num_nodes: 16,
            nodes_per_rack: 8,
            load: 0.8,
            num_tenants: 5,
            borrowing: true,
            gang_max: None,
            run_time_s_max: 5_184_000.0,
            daily_profile: true,
            bursty: true,
            cpu_requests: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// A node of Venus.
/// # Source
/// Hu et al., SC 2021: eight V100 of 32 GB, two Xeon Gold 6146 (48 threads), 376 GB.
const NODE: Machines = Machines {
    count: 133,
    gpus_per_node: 8,
    gpu_type: "V100",
    gpu_memory_gib: 32.0,
    cpu_cores: 48.0,
    memory_gib: 376.0,
};
/// Spread and hourly correlation of the wandering rate, set so that the hourly counts of a Venus-sized workload have the
/// list's variance over mean (39) and lag-1 correlation (0.48).
const RATE_SIGMA: f64 = 0.85;
const RATE_CORRELATION: f64 = 0.1;
/// Users in each tenant and how unequal they are (198 users in fifteen virtual clusters, 4 to 33 in each).
/// # Source
/// A Zipf law with exponent 1.1 to 1.3 fits the users of Helios; *assumed* for each tenant here.
const USERS: (usize, f64) = (20, 1.2);
/// Longest run in the list, jobs.
const RUN_LENGTH_MAX: usize = 1311;

impl HeliosLikeConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        let tenants = self.num_tenants;
        let allowed = (1..=TENANTS.len()).contains(&tenants);
        require("num_tenants", tenants, allowed, "1 to 15")?;
        require("gang_max", 0, self.gang_max != Some(0), "1 or more")?;
        require_locality(self.locality)
    }

    fn cluster(&self) -> ClusterSpec {
        let mut cluster = scaled_cluster(&[NODE], self.num_nodes, self.nodes_per_rack);
        let gpus: Vec<f64> = TENANTS[..self.num_tenants]
            .iter()
            .map(|tenant| tenant.gpus.into())
            .collect();
        cluster.tenants = tenants(&gpus, capacity(&cluster));
        cluster.borrowing = self.borrowing;
        cluster
    }

    fn kinds(&self, cluster: &ClusterSpec) -> Vec<Kind> {
        let largest = gang_max(cluster, self.gang_max);
        let mut kinds = Vec::new();
        for (gang, jobs) in GANGS.into_iter().filter(|(gang, _)| *gang <= largest) {
            for &(threads, share) in self.threads(gang) {
                kinds.push(Kind {
                    jobs: f64::from(jobs) * share,
                    num_gpus: gang,
                    resources: Resources {
                        cpu_cores: threads,
                        ..Resources::WHOLE_GPU
                    },
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
                });
            }
        }
        kinds
    }

    fn threads(&self, gang: u32) -> &'static [(f64, f64)] {
        if !self.cpu_requests {
            return &[(0.0, 1.0)];
        }
        let row = THREADS.iter().find(|(up_to, _)| gang <= *up_to);
        row.map_or(&[(0.0, 1.0)], |(_, values)| values)
    }
}

fn outcomes(gang: u32) -> Outcomes {
    let row = SHARES.iter().find(|(up_to, _)| gang <= *up_to);
    let (_, shares) = row.unwrap_or(&SHARES[SHARES.len() - 1]);
    Outcomes::Leaning {
        shares,
        by_level: &ENDS,
    }
}

pub(super) fn generate(config: &HeliosLikeConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = config.cluster();
    let classes = vec![any_class(&cluster, config.locality)];
    let habits = Habits {
        users: USERS,
        run_time_correlation: RUN_TIME_CORRELATION,
        length_max: RUN_LENGTH_MAX.min((config.num_jobs / 10).max(1)),
        run_time_s_max: config.run_time_s_max,
    };
    let kinds = kinds_that_fit(&cluster, &classes, config.kinds(&cluster));
    let mix = Mix::new(kinds, habits);
    let plan = Plan {
        name: "helios-like",
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
    lay_out(&plan, &mix, cluster, classes, seed)
}

#[cfg(test)]
#[path = "helios_tests.rs"]
mod tests;
