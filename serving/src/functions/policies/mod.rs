//! Dispatchers by name, with settings after colons: `esg:margin=0.1:shed=1.2`.
//!
//! Every rule has the same leave: a margin before the target, a factor of the fastest way on below which a request is
//! dropped, and the choice of a node that knows of warm containers. So what is compared are the rules.

mod batching;
mod esg;
mod fixed;
mod leave;

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;
use pleach_workloads::Seed;

use super::app::Work;
use super::engine::Dispatcher;
use super::platform::{Placing, Platform};
use crate::settings::{Settings, rule};

use batching::{Batching, Rule};
use esg::Esg;
use fixed::{Fixed, Planner};
use leave::Leave;

/// Of all rules here.
const FAMILY: &str = "dispatcher";
/// The rules.
#[rustfmt::skip]
pub const POLICIES: &[Info] = &[
    rule(FAMILY, "esg", "profiles, queues, slack, warm containers, inputs",
        "the cheapest ways through a group within its share of the time left", "ESG, HPDC'24"),
    rule(FAMILY, "infless", "profiles, rate, a function's share",
        "most throughput per resource over what stays free, by batch timeouts", "INFless, ASPLOS'22"),
    rule(FAMILY, "fast-gshare", "profiles, rate, a function's share",
        "most requests per slice for the bulk, the smallest that suffices for the rest", "FaST-GShare, ICPP'23"),
    rule(FAMILY, "orion", "profiles, noise",
        "the cheapest way whose 95th percentile is within the target, fixed at arrival", "Orion, OSDI'22"),
    rule(FAMILY, "aquatope", "profiles, noise",
        "a configuration for each function, fixed by a search beforehand", "Aquatope, ASPLOS'23"),
    rule(FAMILY, "clockwork", "profiles, slack", "by deadline, the largest batch that meets it", "Clockwork, OSDI'20"),
    rule(FAMILY, "nexus", "profiles, rate, a function's share",
        "the cheapest batch that takes half a function's share", "Nexus, SOSP'19"),
    rule(FAMILY, "edf", "profiles", "by deadline, the cheapest way within a part of the target, fixed", "plain"),
    rule(FAMILY, "fastest", "profiles", "by deadline, the fastest configuration", "plain"),
];

/// The dispatcher of a name with settings: `margin` (0 to 0.9), `shed` (0 to 10, 1 where dropping is allowed; 0: never),
/// `warm` (whether a node is chosen by inputs and warm containers), `cold` (whether a container is made while the
/// function has others that can take the batch; false needs `warm`); `esg` has `wait`, `cheap` and `edf`, fixed plans have `batch`.
///
/// # Errors
/// A name or a setting that is not there, or a value out of range.
pub fn by_name(
    text: &str,
    work: &Work,
    platform: &Platform,
    slo: f64,
) -> Result<Box<dyn Dispatcher>, Problem> {
    let mut settings = Settings::of("dispatcher", text, POLICIES)?;
    let name = settings.name;
    let margin = settings.number("margin", 0.0..=0.9)?;
    let shed = settings.number("shed", 0.0..=10.0)?.unwrap_or(1.0);
    let is_blind = matches!(name, "infless" | "fast-gshare");
    let warm = settings.truth("warm")?.unwrap_or(!is_blind);
    let cold = settings.truth("cold")?.unwrap_or(true);
    let leave = Leave {
        // The plain rule plans for four parts in five; published rules plan for the whole time, as published.
        margin: margin.unwrap_or(if name == "edf" { 0.2 } else { 0.0 }),
        shed,
        placing: match (warm, cold) {
            (true, true) => Placing::Warm,
            (true, false) => Placing::Kept,
            (false, true) => Placing::Tight,
            (false, false) => {
                let allowed = "true; false only with warm=true, which knows of containers";
                let key = format!("dispatcher `{text}`: cold");
                return Err(Problem::new(key, cold, allowed, "Add `warm=true`."));
            }
        },
    };
    let batching = |rule: Rule| -> Box<dyn Dispatcher> { Box::new(Batching::new(rule, leave, slo)) };
    let planner = match name {
        "esg" => {
            let mut esg = Esg::new(leave);
            esg.waits = settings.truth("wait")?.unwrap_or(false);
            esg.cheap = settings.truth("cheap")?.unwrap_or(false);
            esg.edf = settings.truth("edf")?.unwrap_or(false);
            settings.end()?;
            return Ok(Box::new(esg));
        }
        "orion" => Planner::Percentile,
        "aquatope" => Planner::Search(Seed(0)),
        "edf" => Planner::Cheapest,
        "fastest" => Planner::Fastest,
        batches => {
            settings.end()?;
            return Ok(match batches {
                "infless" => batching(Rule::Infless),
                "fast-gshare" => batching(Rule::FastGshare),
                "clockwork" => batching(Rule::Clockwork),
                _ => batching(Rule::Nexus),
            });
        }
    };
    let batch = settings.number("batch", 1.0..=64.0)?.unwrap_or(1.0) as u16;
    settings.end()?;
    Ok(Box::new(Fixed::new(planner, leave, (work, platform, slo), batch)))
}
