//! A workload like Acme's cluster Seren (Shanghai AI Laboratory, 2023): language-model development, where evaluation is
//! most of the jobs and pre-training most of the GPU time.
//!
//! Six kinds of work with their own run times and gangs. How gangs split over the kinds is not published: *assumed*, so
//! that both published margins (jobs by kind, jobs by gang size) hold.
//!
//! Not here: Acme's other cluster; what pre-training does after a failure; CPU that evaluation needs.

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use serde::{Deserialize, Serialize};

use super::acme_tables::{
    EVALUATION_RUN_LENGTH_MEAN, GANGS, HOURS, RUN_GAPS_S, RUN_TIME_CORRELATION, USERS, WEEKDAYS, WORKS,
};
use super::arrivals::Shape;
use super::lay_out::{Plan, lay_out};
use super::mix::{Habits, Kind, Lengths, Mix};
use super::outcomes::Outcomes;
use super::site::{
    Machines, any_class, gang_max, require_locality, require_site, scaled_cluster, tenants_with_room,
};
use super::{require, require_common};
use crate::Error;
use crate::Workload;
use crate::seed::Seed;

/// Parameters of `acme-like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AcmeLikeConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes of eight A100, 1 to 100,000. Seren had 286.
    pub num_nodes: u32,
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
    /// Whether evaluation comes in runs and the rate wanders; false gives one Poisson arrival per job.
    pub bursty: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// What a loose placement costs.
    pub locality: LocalityFactors,
}

impl Default for AcmeLikeConfig {
    fn default() -> AcmeLikeConfig {
        AcmeLikeConfig {
            num_jobs: 1000,
            num_nodes: 128,
            nodes_per_rack: 16,
            load: 0.8,
            gang_max: None,
            run_time_s_max: 1_209_604.0,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// A node of Seren.
/// # Source
/// Hu et al., NSDI 2024: eight A100 of 80 GB, 128 cores, 1 TB; 286 nodes.
const NODE: Machines = Machines {
    count: 286,
    gpus_per_node: 8,
    gpu_type: "A100",
    gpu_memory_gib: 80.0,
    cpu_cores: 128.0,
    memory_gib: 1024.0,
};
/// Spread and hourly correlation of the wandering rate: *assumed*, near those of another list of large training jobs
/// (Lingjun 2023: variance over mean 10.4 at 6.5 jobs/h, lag-1 correlation 0.74).
const RATE_SIGMA: f64 = 0.7;
const RATE_CORRELATION: f64 = 0.8;

impl AcmeLikeConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        require_site(self.num_nodes, self.nodes_per_rack, self.run_time_s_max)?;
        require("gang_max", 0, self.gang_max != Some(0), "1 or more")?;
        require_locality(self.locality)
    }

    fn kinds(&self, cluster: &ClusterSpec) -> Vec<Kind> {
        let largest = gang_max(cluster, self.gang_max);
        let mut kinds = Vec::new();
        for (class, work) in WORKS.iter().enumerate() {
            let is_evaluation = class == 0;
            for (gang, jobs) in GANGS.into_iter().zip(work.jobs) {
                if jobs == 0 || gang > largest {
                    continue;
                }
                kinds.push(Kind {
                    jobs: jobs.into(),
                    num_gpus: gang,
                    resources: Resources::WHOLE_GPU,
                    class: class as u16,
                    run_times: work.run_times,
                    outcomes: Outcomes::Shares {
                        killed: work.killed,
                        failed: work.failed,
                    },
                    lengths: if self.bursty && is_evaluation {
                        Lengths::Geometric(EVALUATION_RUN_LENGTH_MEAN)
                    } else {
                        Lengths::One
                    },
                    tenants: tenants_with_room(cluster, gang, |_| 1.0),
                });
            }
        }
        kinds
    }
}

pub(super) fn generate(config: &AcmeLikeConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = scaled_cluster(&[NODE], config.num_nodes, config.nodes_per_rack);
    let classes = WORKS.iter().map(|work| ModelClass {
        name: work.name.into(),
        ..any_class(&cluster, config.locality)
    });
    let classes = classes.collect();
    let habits = Habits {
        users: USERS,
        run_time_correlation: RUN_TIME_CORRELATION,
        length_max: (config.num_jobs / 10).max(1),
        run_time_s_max: config.run_time_s_max,
    };
    let mix = Mix::new(config.kinds(&cluster), habits);
    let plan = Plan {
        name: "acme-like",
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
#[path = "acme_tests.rs"]
mod tests;
