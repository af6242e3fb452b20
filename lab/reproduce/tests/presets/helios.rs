//! The simulator of the Helios study.
//!
//! One virtual cluster at a time, one second at a time: jobs end, jobs arrive, then the queue is walked. FIFO and SJF
//! stop at the first job that finds no place. SRTF hands out a virtual quota (`quota.rs`) and charges a preemption as
//! 7 s (one GPU), 30 s (up to 8) or 60 s of work; a job's end is noticed one second after its work has run out, so an
//! undisturbed job of d seconds holds its GPUs for d + 1. Placement is *consolidate*: the node with the fewest free
//! GPUs that holds the job, else whole nodes and one more for the rest, else none.
//!
//! # Source
//! Hu et al., SC'21; semantics read from the released artefact (`framework/QSSF Service`), nothing copied. Its QSSF
//! needs predictions that were not published and is left out.

use pleach_scheduler::Lens;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::heuristics::head_of_line;
use pleach_scheduler::{ActionKind, ActionSet, ConfigError, PolicyPlanner, Time};

use super::every::Every;
use super::preset::{Preset, RestartCost, unknown};
use super::quota::{Order, VirtualQuota};

/// The policies that [`preset`] knows.
pub const POLICIES: [&str; 4] = ["fifo", "fifo-60s", "sjf", "srtf"];

/// Cost of a restart.
///
/// # Source
/// `ckpt_overhead` of the artefact.
const RESTART: RestartCost = RestartCost {
    one_gpu_s: 7.0,
    one_node_s: 30.0,
    more_nodes_s: 60.0,
};

/// How often the later runs of that simulator planned.
///
/// # Source
/// `self.time += 60` in `Deku0/Helios`, whose results are those that we hold.
const TICK: Time = Time(60_000_000);

/// A policy of the Helios simulator.
///
/// # Errors
/// An unknown name.
pub fn preset(policy: &str) -> Result<Preset, ConfigError> {
    Ok(match policy {
        "fifo" => Preset::new(
            CAPABILITIES,
            PolicyPlanner::new(head_of_line("fifo", Lens::Arrival)),
        ),
        "fifo-60s" => Preset::new(
            CAPABILITIES,
            Every::new(TICK, PolicyPlanner::new(head_of_line("fifo", Lens::Arrival))),
        ),
        "sjf" => Preset::new(
            CAPABILITIES,
            PolicyPlanner::new(head_of_line("sjf-strict", Lens::Shortest)),
        ),
        "srtf" => Preset {
            restart: RESTART,
            extra_run_s: UNNOTICED_S,
            ..Preset::new(
                CAPABILITIES,
                VirtualQuota::new("helios-srtf", Order::ShortestRemaining),
            )
        },
        _ => return Err(unknown(policy, &POLICIES)),
    })
}

/// What a cluster of these simulators can do.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    granted: ActionSet::of(ActionKind::Preempt),
    restart_cost_is_work: true,
    consolidated: true,
    ..Capabilities::DEFAULT
};

/// How long a preemptive policy there does not notice that a job has ended.
pub(super) const UNNOTICED_S: f64 = 1.0;
