//! Elastic jobs: how many GPUs each job gets.
//!
//! [`pleach_dealing::scaling`] says how fast a job would go on other numbers of GPUs, `field` is the plan in the making, `knapsack` the
//! integer programme to which three of the four systems come down.

mod bftrainer;
mod elastic_dp;
mod field;
mod knapsack;
mod pollux;
#[cfg(test)]
mod scaling_tests;
mod sia;
#[cfg(test)]
pub(crate) mod tests;

pub use bftrainer::{BfTrainer, BfTrainerConfig};
pub use elastic_dp::{ElasticDp, ElasticDpConfig};
pub use pollux::{Pollux, PolluxConfig};
pub use sia::{Sia, SiaConfig};

pub(crate) use pleach_dealing::scaling;
use pleach_scheduler::heuristics::Info;

use crate::shared::settings;
use pleach_dealing::{Entry, PREEMPTION};

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "pollux",
            family: "elastic",
            citation: "Pollux OSDI'21, goodput and genetic search",
            knows: "throughput and noise scale of elastic jobs, age, restarts",
            decides: "GPUs of every job on every node, each round, for the generalised mean of speed-ups over a fair share",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<PolluxConfig>,
        make: |value| Ok(Box::new(Pollux::new(settings::read("pollux", value)?)?)),
    },
    Entry {
        info: Info {
            name: "sia",
            family: "elastic",
            citation: "Sia SOSP'23, integer programme over configurations",
            knows: "throughput and noise scale of elastic jobs on each GPU type, age, restarts",
            decides: "type and number of GPUs of every job, each round; whole nodes or parts of one",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<SiaConfig>,
        make: |value| Ok(Box::new(Sia::new(settings::read("sia", value)?)?)),
    },
    Entry {
        info: Info {
            name: "elastic-dp",
            family: "elastic",
            citation: "Effective Elastic Scaling, arXiv 2006.13878",
            knows: "rate of elastic jobs on each number of GPUs",
            decides: "the split of the GPUs with the largest sum of speed-ups; the newest jobs wait where not all fit",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<ElasticDpConfig>,
        make: |value| Ok(Box::new(ElasticDp::new(settings::read("elastic-dp", value)?)?)),
    },
    Entry {
        info: Info {
            name: "bftrainer",
            family: "elastic",
            citation: "BFTrainer, arXiv 2106.12091",
            knows: "rate of elastic jobs on each number of GPUs, cost of a restart",
            decides: "which job trains on how many of the idle GPUs until they or the jobs change",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<BfTrainerConfig>,
        make: |value| Ok(Box::new(BfTrainer::new(settings::read("bftrainer", value)?)?)),
    },
];
