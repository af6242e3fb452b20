//! Dealing: all jobs that wait or run are scored, GPUs are counted out by score, gangs are seated tightly, losers join as guests.
//!
//! A deal has three steps. [`count`](self) gives GPUs to jobs by number alone, best score first, over all pairs of a job and a
//! GPU type. Then gangs are seated, the larger ones first: each keeps its seat unless it is loose. Then those who got nothing
//! share the GPUs of a gang of their size where the believed sum of speeds pays. An elastic job is counted out size by size,
//! and CPU and host memory that are left over go to those whom they speed up most. Deals happen at events, a minimum interval
//! apart; in between free GPUs are filled and nobody is stopped.
//!
//! What differs between planners is only the score ([`Order`]): least attained service, shortest rest, Gittins index, rate per
//! GPU, or a learned [`Formula`].
//!
//! # Source
//! List scheduling (Graham, 1969) with priority indices; the orders are those of Tiresias (NSDI'19) and of shortest remaining
//! time first. Demands for CPU and memory are Synergy's (OSDI'22), steps by what they add Optimus's (EuroSys'18). Sharing by
//! the sum of speeds is Gavel's (OSDI'20), moving spread gangs Gandiva's (OSDI'18). Their combination is ours.
//!
//! # What is deliberately not here
//! Fractions of GPUs (they start first come, first served), gangs on several types, batches below one GPU's.

mod cores;
mod count;
mod deal;
mod formula;
mod guests;
mod order;
mod planner;
mod round;
mod rules;
mod seats;
#[cfg(test)]
mod share_tests;
mod sizes;
#[cfg(test)]
mod tests;
mod trust;

pub use formula::{ESTIMATE_FEATURES, FORMULA_VERSION, Formula, FormulaOrder, INDEX_FEATURES, IndexFeature};
pub use order::{ClassicOrder, Order, OrderConfig, Priority};
pub use planner::Dealer;
pub use round::{RoundDealer, Scores};
pub use rules::DealingRules;
pub use sizes::Step;
pub use trust::Trust;

use pleach_scheduler::heuristics::Info;
use pleach_scheduler::{ActionSet, ConfigError, Planner};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::{Entry, PREEMPTION, SHARING};
use crate::shared::settings;

/// Settings of a planner that deals in a classic order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DealingConfig {
    /// How GPUs are dealt.
    pub rules: DealingRules,
    /// Whose turn it is.
    pub order: OrderConfig,
}

impl DealingConfig {
    /// The defaults of an order.
    #[must_use]
    pub fn of(priority: Priority) -> DealingConfig {
        let mut config = DealingConfig::default();
        match priority {
            Priority::LeastService => {}
            Priority::ShortestRest | Priority::Gittins | Priority::Rate => config.order.gpus_power = 1.0,
        }
        config
    }
}

fn defaults(priority: Priority) -> Value {
    serde_json::to_value(DealingConfig::of(priority)).unwrap_or(Value::Null)
}

fn make(name: &str, priority: Priority, value: &Value) -> Result<Box<dyn Planner>, ConfigError> {
    let config = settings::read_over(name, &DealingConfig::of(priority), value)?;
    config.order.validate(name)?;
    let order = ClassicOrder::new(priority, config.order);
    Ok(Box::new(Dealer::new(name, config.rules, order)?))
}

/// The reference formula, which `checkpoints/reference/index.json` is a copy of.
const REFERENCE: &str = include_str!("index.json");

/// The learned formula that is part of the project.
///
/// # Errors
/// Not in practice: a test reads it.
pub fn reference_formula() -> Result<Formula, ConfigError> {
    serde_json::from_str(REFERENCE).map_err(|error| ConfigError {
        key: "index".into(),
        value: "the reference formula".into(),
        allowed: "a formula of this version".into(),
        hint: format!("{error}."),
    })
}

/// A planner that deals by a formula.
///
/// # Errors
/// A formula that this version cannot read.
pub fn index_planner(formula: &Formula) -> Result<Box<dyn Planner>, ConfigError> {
    formula.validate("index")?;
    Ok(Box::new(Dealer::new(
        "index",
        formula.rules,
        FormulaOrder::new(formula),
    )?))
}

/// The formula that settings of `index` mean. Weights that are given stand for all weights; rules that are left out are those of
/// the reference formula.
///
/// # Errors
/// Settings that are no formula.
pub fn formula_of(value: &Value) -> Result<Formula, ConfigError> {
    let mut base = reference_formula()?;
    if value.get("weights").is_some() {
        base.weights.clear();
        base.origin.clear();
    }
    settings::read_over("index", &base, value)
}

fn make_index(value: &Value) -> Result<Box<dyn Planner>, ConfigError> {
    index_planner(&formula_of(value)?)
}

const REQUIREMENTS: ActionSet = PREEMPTION.union(SHARING);

const fn info(
    name: &'static str,
    citation: &'static str,
    knows: &'static str,
    decides: &'static str,
) -> Info {
    Info {
        name,
        family: "dealing, preemptive, sharing",
        citation,
        knows,
        decides,
    }
}

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: info(
            "las-deal",
            "least attained service (Tiresias NSDI'19), dealt",
            "attained service, gang size, speed on each GPU type and beside each other job",
            "deals GPUs, sizes and cores to the least served jobs, seats gangs tightly, packs the others where that pays",
        ),
        requirements: REQUIREMENTS,
        defaults: || defaults(Priority::LeastService),
        make: |value| make("las-deal", Priority::LeastService, value),
    },
    Entry {
        info: info(
            "srtf-deal",
            "shortest remaining time first, dealt",
            "run time estimate, gang size, speed on each GPU type and beside each other job",
            "as las-deal, the shortest rest first",
        ),
        requirements: REQUIREMENTS,
        defaults: || defaults(Priority::ShortestRest),
        make: |value| make("srtf-deal", Priority::ShortestRest, value),
    },
    Entry {
        info: info(
            "gittins-deal",
            "Gittins index (Tiresias NSDI'19), dealt",
            "attained service, that of ended jobs, gang size, speed on each GPU type and beside each other job",
            "as las-deal, the job most likely to end soon for what it costs first",
        ),
        requirements: REQUIREMENTS,
        defaults: || defaults(Priority::Gittins),
        make: |value| make("gittins-deal", Priority::Gittins, value),
    },
    Entry {
        info: info(
            "rate-deal",
            "greedy by rate per GPU, dealt",
            "gang size, speed on each GPU type and beside each other job",
            "as las-deal, the gang whose GPUs each do most first",
        ),
        requirements: REQUIREMENTS,
        defaults: || defaults(Priority::Rate),
        make: |value| make("rate-deal", Priority::Rate, value),
    },
    Entry {
        info: info(
            "index",
            "a learned linear index, dealt",
            "attained service, age, load, gang size, speed on each GPU type and beside each other job",
            "as las-deal, by a formula of weighted logarithms that evolution found",
        ),
        requirements: REQUIREMENTS,
        defaults: || serde_json::from_str(REFERENCE).unwrap_or(Value::Null),
        make: make_index,
    },
];
