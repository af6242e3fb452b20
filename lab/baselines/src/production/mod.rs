//! What production clusters run: gangs that relax their locality, and quotas.

mod drf;
mod philly;
mod victims;

pub use drf::{Drf, DrfConfig, Weights};
pub use philly::{Philly, PhillyConfig};

use pleach_scheduler::ActionSet;
use pleach_scheduler::heuristics::Info;

use crate::shared::settings;
use pleach_dealing::{Entry, PREEMPTION};

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "philly",
            family: "production, preemptive",
            citation: "Philly ATC'19, virtual clusters on YARN",
            knows: "arrival, gang size, quotas",
            decides: "the oldest job of each virtual cluster that finds its locality, which it relaxes with time; restores quotas",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<PhillyConfig>,
        make: |value| Ok(Box::new(Philly::new(settings::read("philly", value)?)?)),
    },
    Entry {
        info: Info {
            name: "drf",
            family: "fair",
            citation: "DRF NSDI'11",
            knows: "gang size, CPU, memory, tenant",
            decides: "the oldest job that fits of the tenant with the least dominant share",
        },
        requirements: ActionSet::NONE,
        defaults: settings::defaults::<DrfConfig>,
        make: |value| Ok(Box::new(Drf::new(settings::read("drf", value)?)?)),
    },
];
