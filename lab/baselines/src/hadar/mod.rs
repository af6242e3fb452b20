//! Hadar and HadarE: mixed types and copies.

pub mod dual;
pub mod find_alloc;
mod forks;
#[allow(clippy::module_inception)] // The system's name is the line's name.
mod hadar;
mod hadare;
pub mod market;
pub mod utility;

pub use hadar::{Hadar, HadarConfig};
pub use hadare::{HadarE, HadarEConfig};

use pleach_scheduler::heuristics::Info;
use pleach_scheduler::{ActionKind, ActionSet};

use crate::shared::settings;
use pleach_dealing::{Entry, PREEMPTION};

const REQUIREMENTS: ActionSet = PREEMPTION.with(ActionKind::MixTypes);

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "hadar",
            family: "heterogeneity-aware",
            citation: "Hadar IPDPS'24",
            knows: "run time estimates, speed on each GPU type, locality",
            decides: "the set of jobs whose utility exceeds the price of their GPUs, gangs across GPU types",
        },
        requirements: REQUIREMENTS,
        defaults: settings::defaults::<HadarConfig>,
        make: |value| Ok(Box::new(Hadar::new(settings::read("hadar", value)?)?)),
    },
    Entry {
        info: Info {
            name: "hadare",
            family: "heterogeneity-aware",
            citation: "HadarE arXiv 2503.10918",
            knows: "run time estimates, speed on each GPU type, size of the weights",
            decides: "copies of jobs on separate nodes, each where it raises utility most, until no node idles",
        },
        requirements: REQUIREMENTS,
        defaults: settings::defaults::<HadarEConfig>,
        make: |value| Ok(Box::new(HadarE::new(settings::read("hadare", value)?)?)),
    },
];
