//! Synergy: CPU and memory beside GPUs.

mod optimum;
mod order;
mod planner;
#[cfg(test)]
pub(crate) mod profile_tests;
mod round;
mod server_allocator;
#[cfg(test)]
mod tests;

pub use optimum::{Group, Optimum, optimum};
pub use order::Order;
pub use planner::{Grant, Synergy, SynergyConfig};
pub use pleach_dealing::demand::{Choice, Counts, CpuMemory, Holding, ResourceDemand, worthwhile};
pub use pleach_dealing::profile::{Profile, Profiles};
pub use server_allocator::{Server, ServerAllocator};

use pleach_scheduler::heuristics::Info;
use pleach_scheduler::{ConfigError, Planner};
use serde_json::Value;

use crate::shared::settings;
use pleach_dealing::{Entry, PREEMPTION};

fn make(name: &'static str, grant: Grant, value: &Value) -> Result<Box<dyn Planner>, ConfigError> {
    Ok(Box::new(Synergy::new(name, grant, settings::read(name, value)?)?))
}

const KNOWS: &str = "gang size, each class's speed over CPU and memory; run time for srtf and ftf";

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "synergy-fair",
            family: "resource-sensitive, preemptive",
            citation: "Synergy OSDI'22, GPU-proportional",
            knows: "gang size; run time for srtf and ftf",
            decides: "in rounds which jobs run, each with CPU and memory in proportion to its GPUs",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<SynergyConfig>,
        make: |value| make("synergy-fair", Grant::Proportional, value),
    },
    Entry {
        info: Info {
            name: "synergy-greedy",
            family: "resource-sensitive, preemptive",
            citation: "Synergy OSDI'22, GREEDY",
            knows: KNOWS,
            decides: "in rounds which jobs run, each with the CPU and memory that suit it best, or not at all",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<SynergyConfig>,
        make: |value| make("synergy-greedy", Grant::Greedy, value),
    },
    Entry {
        info: Info {
            name: "synergy-tune",
            family: "resource-sensitive, preemptive",
            citation: "Synergy OSDI'22, TUNE",
            knows: KNOWS,
            decides: "in rounds which jobs run and with how much CPU and memory, none below the proportional share",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<SynergyConfig>,
        make: |value| make("synergy-tune", Grant::Tune, value),
    },
    Entry {
        info: Info {
            name: "synergy-opt",
            family: "resource-sensitive, preemptive",
            citation: "Synergy OSDI'22, OPT (LP1), placed as TUNE",
            knows: KNOWS,
            decides: "as synergy-tune, with the CPU and memory that make all together fastest",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<SynergyConfig>,
        make: |value| make("synergy-opt", Grant::Optimum, value),
    },
];
