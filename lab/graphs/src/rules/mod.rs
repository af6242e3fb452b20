//! Rules by name: what decides without learning.

mod fair;
mod index;
mod order;
mod rule;

use std::path::Path;
use std::sync::Arc;

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;
use pleach_serving::settings::{Settings, rule};

use crate::board::Offers;
use crate::engine::{Engine, Outcome};
use crate::list::List;
use crate::network::{Deciding, Network};

pub use fair::Fair;
pub use index::{Index, WEIGHTS};
pub use order::{Order, Random};
pub use rule::Rule;
pub(crate) use rule::ceil_share;

const FAMILY: &str = "graph jobs";

/// All of them.
#[rustfmt::skip]
pub const RULES: &[Info] = &[
    rule(FAMILY, "stage-fifo", "arrivals",
        "a stage of the own job, else of the oldest one, with all that is free", "Spark's FIFO; spark-sched-sim"),
    rule(FAMILY, "stage-fair", "arrivals, executors of jobs",
        "a stage of the own job, else of the oldest one below an even share", "Spark's fair scheduler; spark-sched-sim"),
    rule(FAMILY, "stage-weighted-fair", "the same, work at arrival",
        "the same, shares by the work at arrival to a power that is tuned", "Mao et al., SIGCOMM'19"),
    rule(FAMILY, "srpt-cap", "work left, executors of jobs",
        "a stage of the own job, else of that with the least work left below some even shares", "ours"),
    rule(FAMILY, "sjf-cp", "work left, critical paths",
        "the longest path of the job with the least work left, with all that is free", "baseline of Decima"),
    rule(FAMILY, "graphene-like", "work of stages, critical paths",
        "the stage with the most work, then the longest path; of Graphene's packing one resource is left", "Grandl et al., OSDI'16"),
    rule(FAMILY, "stage-heft", "critical paths",
        "the stage with the longest path, whatever its job, with all that is free", "Topcuoglu et al., TPDS'02"),
    rule(FAMILY, "stage-index", "work left, critical paths, executors of jobs, ages",
        "the largest of nine weighted numbers below a share by work left: 13 numbers found by evolution", "ours"),
    rule(FAMILY, "stage-network", "work left, executors of jobs; of a file's network all stages",
        "a searched tree's order as a sum, to which a network of a file may add", "ours; network after Mao et al., SIGCOMM'19"),
    rule(FAMILY, "stage-random", "nothing", "any stage, any number of executors", "textbook"),
];

/// A rule by name, with settings after colons: `power` of `stage-weighted-fair` (-2 to 2), `cap` of `srpt-cap` (0.1 to 100),
/// `file` of `stage-network`, which is alone and does not end in `.json`. `seed` is for those that draw.
///
/// # Errors
/// A name or a setting that is not there.
pub fn by_name(text: &str, list: &List, seed: u64) -> Result<Box<dyn Rule>, Problem> {
    if let Some(file) = text.strip_prefix("stage-network:file=") {
        return Ok(Box::new(Deciding::new(Network::read(Path::new(file))?)));
    }
    let mut settings = Settings::of("policy", text, RULES)?;
    let rule: Box<dyn Rule> = match settings.name {
        "stage-fifo" => Box::new(Fair::first_come()),
        "stage-fair" => Box::new(Fair::weighted(list, 0.0)),
        "stage-weighted-fair" => {
            let power = settings.number("power", -2.0..=2.0)?;
            Box::new(Fair::weighted(list, power.unwrap_or(-0.5)))
        }
        "srpt-cap" => {
            let cap = settings.number("cap", 0.1..=100.0)?;
            Box::new(Index::srpt_cap(cap.unwrap_or(2.0)))
        }
        "sjf-cp" => Box::new(Order::LeastWork),
        "graphene-like" => Box::new(Order::MostWork),
        "stage-heft" => Box::new(Order::LongestPath),
        "stage-index" => Box::new(Index::new(WEIGHTS)),
        "stage-network" => Box::new(Deciding::new(Network::new(false, Offers::Caps, || 0.5))),
        _ => Box::new(Random::new(seed)),
    };
    settings.end()?;
    Ok(rule)
}

/// Plays a list to its end.
///
/// # Errors
/// A play in which nothing can be chosen while jobs are left, which no list is known to bring about.
pub fn play(list: Arc<List>, rule: &mut dyn Rule) -> Result<Outcome, Problem> {
    finish(Engine::new(list), rule)
}

/// Plays on to the end.
///
/// # Errors
/// As [`play`].
pub fn finish(mut engine: Engine, rule: &mut dyn Rule) -> Result<Outcome, Problem> {
    while !engine.is_over() {
        check_offers(&engine)?;
        let choice = rule.choose(&engine);
        engine.decide(choice);
    }
    Ok(engine.outcome())
}

/// # Errors
/// Nothing is offered though jobs are left.
pub(crate) fn check_offers(engine: &Engine) -> Result<(), Problem> {
    if !engine.offered().is_empty() {
        return Ok(());
    }
    let what = format!("nothing to choose at {} ms", engine.now_ms());
    Err(Problem::new(
        "list of graph jobs",
        what,
        "a list that ends",
        "Report this list.",
    ))
}
