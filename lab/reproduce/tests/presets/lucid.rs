//! The simulator of Lucid, without its sharing of GPUs.
//!
//! It grew out of that of Helios (`helios.rs`) and keeps its clock, its placement and its FIFO, SJF and SRTF. A
//! preemption costs 40 s of work up to 8 GPUs and 60 s above. Tiresias plans only at whole minutes: a virtual quota over
//! two queues, jobs that have received more than 18,000 GPU·s after the others, by submission in each.
//!
//! # Source
//! Hu et al., ASPLOS'23; semantics read from the released artefact (`simulation/policy`), nothing copied. QSSF needs
//! predictions that were not published; Lucid itself needs sharing. Both are left out.

use pleach_scheduler::Lens;
use pleach_scheduler::heuristics::head_of_line;
use pleach_scheduler::{ConfigError, PolicyPlanner, Time};

use super::every::Every;
use super::helios::{CAPABILITIES, UNNOTICED_S};
use super::preset::{Preset, RestartCost, unknown};
use super::quota::{Order, VirtualQuota};

/// The policies that [`preset`] knows.
pub const POLICIES: [&str; 4] = ["fifo", "sjf", "srtf", "tiresias"];

/// Cost of a restart.
///
/// # Source
/// `ckpt_overhead` of the artefact.
const RESTART: RestartCost = RestartCost {
    one_gpu_s: 40.0,
    one_node_s: 40.0,
    more_nodes_s: 60.0,
};

/// Service above which Tiresias puts a job behind the others, GPU·s, and how often it plans.
///
/// # Source
/// `simulation/policy/tiresias.py` of the artefact.
const SERVED_GPU_S: f64 = 18_000.0;
const INTERVAL: Time = Time(60_000_000);

/// A policy of the Lucid simulator.
///
/// # Errors
/// An unknown name.
pub fn preset(policy: &str) -> Result<Preset, ConfigError> {
    let order = match policy {
        "fifo" => {
            return Ok(Preset::new(
                CAPABILITIES,
                PolicyPlanner::new(head_of_line("fifo", Lens::Arrival)),
            ));
        }
        "sjf" => {
            return Ok(Preset::new(
                CAPABILITIES,
                PolicyPlanner::new(head_of_line("sjf-strict", Lens::Shortest)),
            ));
        }
        "srtf" => Order::ShortestRemaining,
        "tiresias" => Order::ServedAtMost(SERVED_GPU_S),
        _ => return Err(unknown(policy, &POLICIES)),
    };
    let preset = match order {
        Order::ShortestRemaining => Preset::new(CAPABILITIES, VirtualQuota::new("lucid-srtf", order)),
        Order::ServedAtMost(_) => Preset::new(
            CAPABILITIES,
            Every::new(INTERVAL, VirtualQuota::new("lucid-tiresias", order)),
        ),
    };
    Ok(Preset {
        restart: RESTART,
        extra_run_s: UNNOTICED_S,
        ..preset
    })
}
