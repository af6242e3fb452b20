//! Dealing: all jobs that wait or run are scored, GPUs are counted out by score, gangs are seated tightly, losers join as guests.
//!
//! A deal has three steps. [`count`](self) gives GPUs to jobs by number alone, best score first, over all pairs of a job and a
//! GPU type. Then gangs are seated, the larger ones first: each keeps its seat unless it is loose. Then jobs that got nothing
//! share the GPUs of a gang of their size where the believed sum of speeds pays. An elastic job is counted out size by size.
//! Spare CPU and host memory go to the jobs that gain most. Deals happen at events, a minimum interval apart; in between free
//! GPUs are filled and no job is stopped.
//!
//! What differs between planners is only the score ([`Order`]): least attained service, shortest rest, Gittins index, rate per
//! GPU, a learned [`Formula`], a learned tree or network ([`ScoredOrder`]), or the turn in which a policy chooses a job ([`PassOrder`]).
//!
//! # Source
//! List scheduling (Graham, 1969) with priority indices; the orders are those of Tiresias (NSDI'19) and of shortest remaining
//! time first. Demands for CPU and memory are Synergy's (OSDI'22), steps by what they add Optimus's (EuroSys'18). Sharing by
//! the sum of speeds is Gavel's (OSDI'20), moving spread gangs Gandiva's (OSDI'18). Their combination is ours.
//!
//! [`Ranker`] makes an order of all waiting jobs of any policy or dealer, and [`InOrder`] starts jobs along it, as a batch system
//! does that receives the order and nothing else.
//!
//! [`Conservative`] backfilling gives every waiting job a slot, and [`mod@slurm`] does what a site's own Slurm does: both share
//! no step with deals.
//!
//! Planners of any kind share the public modules: what would be free if jobs were stopped ([`what_if`]), how a plan is carried
//! out ([`allocation`]), and how jobs scale with GPUs, CPU and memory ([`scaling`], [`profile`]).
//!
//! # What is deliberately not here
//! Solvers and random numbers: a daemon deals too. Published planners (`lab`).
//! Fractions of GPUs (they start first come, first served), gangs on several types, batches below one GPU's.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod allocation;
mod backfilling;
mod belief;
mod columns;
#[cfg(test)]
mod columns_tests;
mod cores;
mod count;
mod deal;
pub mod demand;
mod entry;
mod facts;
mod formula;
pub mod gittins;
mod guests;
mod in_order;
pub mod kubernetes;
pub mod kueue;
mod order;
pub mod pair_speeds;
mod passes;
#[cfg(test)]
mod passes_tests;
mod planner;
pub mod profile;
mod ranker;
#[cfg(test)]
mod ranker_tests;
mod round;
mod rules;
pub mod scaling;
mod scored;
#[cfg(test)]
mod scored_tests;
mod seats;
pub mod settings;
mod sizes;
pub mod slurm;
pub mod starts;
#[cfg(test)]
#[doc(hidden)]
#[path = "./tests/test_clusters.rs"]
pub mod test_clusters;
#[cfg(test)]
mod tests;
mod trust;
mod unique_keys;
pub mod what_if;

pub use backfilling::{BACKFILLING, Conservative, ConservativeConfig};
pub use columns::{deal_markdown, deal_schema};
pub use deal::Opened;
pub use entry::{DEALS, ENTRIES, Entry, PREEMPTION, SHARING};
pub use facts::DealRows;
pub use formula::{Formula, FormulaOrder};
pub use in_order::InOrder;
pub use order::{Ask, ClassicOrder, Order, OrderConfig, Priority};
pub use passes::PassOrder;
pub use planner::Dealer;
pub use ranker::{Explains, RANKED_MAX, Ranked, Ranker};
pub use round::{RoundDealer, Scores};
pub use rules::DealingRules;
pub use scored::{ScoredOrder, scored_rules};
pub use sizes::Step;
pub use trust::Trust;

use pleach_scheduler::policy::Policy;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{Planner, Problem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
            Priority::LeastService | Priority::Believed => {}
            Priority::ShortestRest | Priority::Gittins | Priority::Rate => config.order.gpus_power = 1.0,
        }
        config
    }
}

/// The names of [`make`].
pub const NAMES: [&str; 6] = [
    "belief-deal",
    "gittins-deal",
    "index",
    "las-deal",
    "rate-deal",
    "srtf-deal",
];

/// The order of a classic name; none for `index` and other names.
#[must_use]
pub fn priority_of(name: &str) -> Option<Priority> {
    match name {
        "las-deal" => Some(Priority::LeastService),
        "srtf-deal" => Some(Priority::ShortestRest),
        "belief-deal" => Some(Priority::Believed),
        "gittins-deal" => Some(Priority::Gittins),
        "rate-deal" => Some(Priority::Rate),
        _ => None,
    }
}

/// The settings of one of [`NAMES`]; null for other names.
#[must_use]
pub fn defaults(name: &str) -> Value {
    let settings = match priority_of(name) {
        Some(priority) => serde_json::to_value(DealingConfig::of(priority)),
        None if name == "index" => serde_json::from_str(REFERENCE),
        None => Ok(Value::Null),
    };
    settings.unwrap_or(Value::Null)
}

/// A planner by one of [`NAMES`], from its settings; what is left out, or `null`, is as in [`defaults`].
///
/// # Errors
/// Another name, settings that do not fit.
pub fn make(name: &str, value: &Value) -> Result<Box<dyn Planner>, Problem> {
    let Some(priority) = priority_of(name) else {
        settings::check("dealing", "name", name, name == "index", &NAMES.join(", "))?;
        return index_planner(&formula_of(value)?);
    };
    let config = settings::read_over(name, &DealingConfig::of(priority), value)?;
    config
        .order
        .check_at(&format!("{name}.order"), settings::DEFAULT_HINT)?;
    let order = ClassicOrder::new(priority, config.order);
    Ok(Box::new(Dealer::new(name, config.rules, order)?))
}

/// The order of one of [`NAMES`], with its defaults.
///
/// # Errors
/// Another name.
pub fn order_of(name: &str) -> Result<Box<dyn Order>, Problem> {
    if let Some(priority) = priority_of(name) {
        return Ok(Box::new(ClassicOrder::new(
            priority,
            DealingConfig::of(priority).order,
        )));
    }
    settings::check("dealing", "name", name, name == "index", &NAMES.join(", "))?;
    Ok(Box::new(FormulaOrder::new(&reference_formula()?)))
}

/// The rules by which passes are dealt: those of `las-deal`, and a job runs for four times the cost of its restart before a deal
/// stops it, as `index` has it. *Assumed*: a policy does not see which jobs run, so stints are all that keeps two jobs from
/// stopping each other in turn.
#[must_use]
pub fn passes_rules() -> DealingRules {
    DealingRules {
        stint: 4.0,
        ..DealingRules::default()
    }
}

/// A planner that deals by the passes of a policy ([`PassOrder`]).
///
/// # Errors
/// Not in practice: the rules are [`passes_rules`].
pub fn policy_planner<P: Policy>(name: &str, policy: P) -> Result<Dealer<PassOrder<P>>, Problem> {
    Dealer::new(name, passes_rules(), PassOrder::new(policy))
}

/// A planner that deals by what was learned, by [`scored_rules`].
///
/// # Errors
/// Not in practice: as [`scored_rules`].
pub fn scored_planner(name: &str, order: ScoredOrder) -> Result<Dealer<ScoredOrder>, Problem> {
    Dealer::new(name, scored_rules()?, order)
}

/// The reference formula, which `checkpoints/reference/index.json` is a copy of.
const REFERENCE: &str = include_str!("index.json");

/// The learned formula that is part of the project.
///
/// # Errors
/// Not in practice: a test reads it.
pub fn reference_formula() -> Result<Formula, Problem> {
    serde_json::from_str(REFERENCE).map_err(|error| {
        Problem::new(
            "index",
            "the reference formula",
            "a formula of this version",
            format!("{error}."),
        )
    })
}

/// A planner that deals by a formula.
///
/// # Errors
/// A formula that this version cannot read.
pub fn index_planner(formula: &Formula) -> Result<Box<dyn Planner>, Problem> {
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
pub fn formula_of(value: &Value) -> Result<Formula, Problem> {
    let mut base = reference_formula()?;
    if value.get("weights").is_some() {
        base.weights.clear();
        base.origin.clear();
    }
    settings::read_over("index", &base, value)
}
