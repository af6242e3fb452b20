//! The policies that play in a tournament, and the workloads.

use pleach_experiments::door::{DOOR, PolicySpec, own_policies};
use pleach_experiments::error::Error;

/// The workloads of the default tournament: generated, so that it needs no file.
pub const WORKLOADS: [&str; 7] = [
    "Pleach/Philly-v0",
    "helios-like",
    "gavel-multi",
    "synergy-multi",
    "pai-share",
    "sia-philly",
    "Pleach/LlmSite-v1",
];

/// Planners that play only if they are named, because their jobs are not the same computation.
pub const APART: [&str; 1] = ["hadare"];

/// Every policy with a name but those `APART`, or those that were named.
///
/// # Errors
/// An unknown name.
pub fn field(names: &[String]) -> Result<Vec<PolicySpec>, Error> {
    if !names.is_empty() {
        return Ok(DOOR.open_all(names)?);
    }
    let heuristics = pleach_scheduler::heuristics::names().iter().copied();
    let planners = DOOR.planners().map(|entry| entry.info.name);
    let own = own_policies().iter().map(|own| own.info.name);
    let names: Vec<String> = heuristics
        .chain(planners)
        .chain(own)
        .filter(|name| !APART.contains(name))
        .map(str::to_string)
        .collect();
    Ok(DOOR.open_all(&names)?)
}
