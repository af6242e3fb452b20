//! Schedulers that know only what a job has received.

mod gittins;
mod tiresias;

pub use gittins::GittinsIndex;
pub use tiresias::{Tiresias, TiresiasConfig};

use super::{Asks, Entry, settings};
use crate::heuristics::Info;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "tiresias",
            family: "information-agnostic, preemptive",
            citation: "Tiresias NSDI'19, discretised 2D-LAS",
            knows: "attained service, gang size",
            decides: "the least served class first, stopping higher classes; consolidates gangs that suffer from spreading",
        },
        asks: Asks::PREEMPTION,
        defaults: settings::defaults::<TiresiasConfig>,
        make: |value| Ok(Box::new(Tiresias::las(settings::read("tiresias", value)?)?)),
    },
    Entry {
        info: Info {
            name: "tiresias-gittins",
            family: "information-agnostic, preemptive",
            citation: "Tiresias NSDI'19, discretised 2D-Gittins index",
            knows: "attained service, gang size, GPU-time of ended jobs",
            decides: "as tiresias, within a class the job most likely to end soon for what it costs",
        },
        asks: Asks::PREEMPTION,
        defaults: settings::defaults::<TiresiasConfig>,
        make: |value| {
            Ok(Box::new(Tiresias::gittins(settings::read(
                "tiresias-gittins",
                value,
            )?)?))
        },
    },
];
