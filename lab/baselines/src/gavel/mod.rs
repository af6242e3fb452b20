//! Gavel: what part of its time each job is due on each GPU type, by linear programmes, and rounds that give it that.
//!
//! The policies state what is fair, short or cheap (`policies`) as programmes over groups of equal jobs (`time_program`); the
//! round mechanism ([`crate::rounds`]) leases GPUs so that every job comes to its part. With space sharing (`-packed`), pairs
//! of jobs with gangs of one size are combinations too.
//!
//! # Source
//! Narayanan et al., OSDI'20, and the released code (stanford-futuredata/gavel at c4fa400), read for its behaviour.
//!
//! # Deviations
//! Those of the policies are listed there. A round keeps quotas, draining nodes, CPU and memory; jobs that hold fractions of
//! a GPU have no part in it. A job's speed beside another is the cluster's model of it (its table of pairs where there is one).

mod config;
mod finish_time;
mod gandiva;
mod max_min;
mod policies;
mod snapshot;
#[cfg(test)]
mod tests;
mod time_program;

pub use config::Common;
pub use finish_time::{Claim, fairest};
pub use gandiva::equal_times;
pub use max_min::{Due, fill};
pub use policies::{fifo, las_norms, most_progress};
pub use snapshot::{Kind, Snapshot};
pub use time_program::{TimeProgram, group_by};

use config::{CostConfig, HierarchicalConfig};
use finish_time::IsolatedTime;
use gandiva::Grouping;
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::heuristics::Info;
use pleach_scheduler::{ActionSet, ConfigError, Planner};
use policies::{GavelPolicy, Objective};
use serde_json::Value;

use crate::rounds::RoundPlanner;
use crate::shared::settings;
use pleach_dealing::{Entry, PREEMPTION, SHARING};

type Made = Result<Box<dyn Planner>, ConfigError>;

fn planner(name: &str, objective: Objective, common: Common) -> Box<dyn Planner> {
    let packed = name.ends_with("-packed");
    let rules = common.rules();
    let mut policy = GavelPolicy::new(objective, common);
    Box::new(RoundPlanner::new(name, rules, move |cluster: &Cluster| {
        Ok(policy.targets(cluster, packed))
    }))
}

fn make(name: &str, objective: Objective, value: &Value) -> Made {
    let common: Common = settings::read(name, value)?;
    common.validate(name)?;
    Ok(planner(name, objective, common))
}

/// Rounds of a minute and targets anew as soon as anything changes: what Gavel's policies come to where their mechanism reacts at
/// once. *Ours*; the paper's rounds are six times as long, and its code solves no more often than every 32 minutes.
/// Where restarts are dear a round lasts as long as two of them.
fn fast() -> Common {
    Common {
        round_s: 60.0,
        round_restarts_min: 2.0,
        retarget_min_s: 0.0,
        ..Common::default()
    }
}

fn make_fast(name: &str, objective: Objective, value: &Value) -> Made {
    let common = settings::read_over(name, &fast(), value)?;
    common.validate(name)?;
    Ok(planner(name, objective, common))
}

fn make_cost(name: &str, value: &Value) -> Made {
    let config: CostConfig = settings::read(name, value)?;
    config.validate(name)?;
    let common = config.common.clone();
    Ok(planner(name, Objective::Cost(config), common))
}

fn make_hierarchical(name: &str, value: &Value) -> Made {
    let config: HierarchicalConfig = settings::read(name, value)?;
    config.validate(name)?;
    let common = config.common.clone();
    Ok(planner(name, Objective::Hierarchical(config), common))
}

fn make_gandiva(value: &Value) -> Made {
    let name = "gavel-gandiva";
    let common: Common = settings::read(name, value)?;
    common.validate(name)?;
    let mut grouping = Grouping::default();
    Ok(Box::new(RoundPlanner::new(
        name,
        common.rules(),
        move |cluster: &Cluster| Ok(grouping.targets(&Snapshot::of(cluster, Some(0.0)))),
    )))
}

/// What a policy with two jobs on the same GPUs requires.
const PACKING: ActionSet = PREEMPTION.union(SHARING);

const fn info(
    name: &'static str,
    citation: &'static str,
    knows: &'static str,
    decides: &'static str,
) -> Info {
    Info {
        name,
        family: "heterogeneity-aware, preemptive, rounds",
        citation,
        knows,
        decides,
    }
}

const SPEEDS: &str = "speed on each GPU type, gang size";
const SPEEDS_AND_WORK: &str = "speed on each GPU type, gang size, estimate";
const PAIR_SPEEDS: &str = "speed on each GPU type and beside each other job, gang size";
const PAIR_SPEEDS_AND_WORK: &str = "speed on each GPU type and beside each other job, gang size, estimate";

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: info(
            "gavel-las",
            "Gavel OSDI'20, heterogeneity-aware LAS",
            SPEEDS,
            "time on each type so that the least normalised throughput is as large as can be",
        ),
        requirements: PREEMPTION,
        defaults: settings::defaults::<Common>,
        make: |value| make("gavel-las", Objective::Las, value),
    },
    Entry {
        info: info(
            "gavel-las-packed",
            "Gavel OSDI'20, heterogeneity-aware LAS with space sharing",
            PAIR_SPEEDS,
            "as gavel-las, alone or in pairs",
        ),
        requirements: PACKING,
        defaults: settings::defaults::<Common>,
        make: |value| make("gavel-las-packed", Objective::Las, value),
    },
    Entry {
        info: info(
            "gavel-makespan",
            "Gavel OSDI'20, minimum makespan",
            SPEEDS_AND_WORK,
            "time on each type so that the last job ends as soon as can be",
        ),
        requirements: PREEMPTION,
        defaults: settings::defaults::<Common>,
        make: |value| make("gavel-makespan", Objective::Makespan, value),
    },
    Entry {
        info: info(
            "gavel-makespan-packed",
            "Gavel OSDI'20, minimum makespan with space sharing",
            PAIR_SPEEDS_AND_WORK,
            "as gavel-makespan, alone or in pairs",
        ),
        requirements: PACKING,
        defaults: settings::defaults::<Common>,
        make: |value| make("gavel-makespan-packed", Objective::Makespan, value),
    },
    Entry {
        info: info(
            "gavel-ftf",
            "Gavel OSDI'20, finish-time fairness (Themis's metric)",
            SPEEDS_AND_WORK,
            "time on each type so that no job ends much later than with 1/n of the cluster",
        ),
        requirements: PREEMPTION,
        defaults: settings::defaults::<Common>,
        make: |value| make("gavel-ftf", Objective::FinishTime(IsolatedTime::default()), value),
    },
    Entry {
        info: info(
            "gavel-ftf-packed",
            "Gavel OSDI'20, finish-time fairness with space sharing",
            PAIR_SPEEDS_AND_WORK,
            "as gavel-ftf, alone or in pairs",
        ),
        requirements: PACKING,
        defaults: settings::defaults::<Common>,
        make: |value| {
            make(
                "gavel-ftf-packed",
                Objective::FinishTime(IsolatedTime::default()),
                value,
            )
        },
    },
    Entry {
        info: info(
            "gavel-fifo",
            "Gavel OSDI'20, heterogeneity-aware FIFO",
            SPEEDS,
            "the best types to the jobs that came first",
        ),
        requirements: PREEMPTION,
        defaults: settings::defaults::<Common>,
        make: |value| make("gavel-fifo", Objective::Fifo, value),
    },
    Entry {
        info: info(
            "gavel-fifo-packed",
            "Gavel OSDI'20, heterogeneity-aware FIFO with space sharing",
            PAIR_SPEEDS,
            "as gavel-fifo, alone or in pairs",
        ),
        requirements: PACKING,
        defaults: settings::defaults::<Common>,
        make: |value| make("gavel-fifo-packed", Objective::Fifo, value),
    },
    Entry {
        info: info(
            "gavel-gandiva",
            "Gavel OSDI'20, Gandiva as its authors run it as a rival",
            PAIR_SPEEDS,
            "equal times on all types, in random pairs where not all jobs have GPUs",
        ),
        requirements: PACKING,
        defaults: settings::defaults::<Common>,
        make: make_gandiva,
    },
    Entry {
        info: info(
            "gavel-cost",
            "Gavel OSDI'20, minimum cost",
            SPEEDS_AND_WORK,
            "most progress for the price of the GPUs, with deadlines if wanted",
        ),
        requirements: PREEMPTION,
        defaults: settings::defaults::<CostConfig>,
        make: |value| make_cost("gavel-cost", value),
    },
    Entry {
        info: info(
            "gavel-cost-packed",
            "Gavel OSDI'20, minimum cost with space sharing",
            PAIR_SPEEDS_AND_WORK,
            "as gavel-cost, alone or in pairs",
        ),
        requirements: PACKING,
        defaults: settings::defaults::<CostConfig>,
        make: |value| make_cost("gavel-cost-packed", value),
    },
    Entry {
        info: info(
            "gavel-hierarchical",
            "Gavel OSDI'20, hierarchical by water-filling",
            "speed on each GPU type, gang size, tenant and quota",
            "fair among tenants by quota, then among the jobs of each",
        ),
        requirements: PREEMPTION,
        defaults: settings::defaults::<HierarchicalConfig>,
        make: |value| make_hierarchical("gavel-hierarchical", value),
    },
    Entry {
        info: info(
            "gavel-hierarchical-packed",
            "Gavel OSDI'20, hierarchical by water-filling with space sharing",
            "speed on each GPU type and beside each other job, gang size, tenant and quota",
            "as gavel-hierarchical, alone or in pairs",
        ),
        requirements: PACKING,
        defaults: settings::defaults::<HierarchicalConfig>,
        make: |value| make_hierarchical("gavel-hierarchical-packed", value),
    },
    Entry {
        info: info(
            "gavel-las-fast",
            "Gavel OSDI'20, heterogeneity-aware LAS, in rounds of a minute",
            SPEEDS,
            "as gavel-las, with targets anew at every change",
        ),
        requirements: PREEMPTION,
        defaults: || serde_json::to_value(fast()).unwrap_or(Value::Null),
        make: |value| make_fast("gavel-las-fast", Objective::Las, value),
    },
    Entry {
        info: info(
            "gavel-las-fast-packed",
            "Gavel OSDI'20, heterogeneity-aware LAS with space sharing, in rounds of a minute",
            PAIR_SPEEDS,
            "as gavel-las-packed, with targets anew at every change",
        ),
        requirements: PACKING,
        defaults: || serde_json::to_value(fast()).unwrap_or(Value::Null),
        make: |value| make_fast("gavel-las-fast-packed", Objective::Las, value),
    },
];
