//! Schedulers that go by the service that jobs have had: what they received, or how much sharing has cost them.

mod queues;
mod themis;
mod tiresias;

pub use queues::TiresiasConfig;
pub use themis::{Themis, ThemisConfig};
pub use tiresias::Tiresias;

use pleach_scheduler::heuristics::Info;

use crate::shared::settings;
use pleach_dealing::{Entry, PREEMPTION};

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "tiresias",
            family: "information-agnostic, preemptive",
            citation: "Tiresias NSDI'19, discretised 2D-LAS",
            knows: "attained service, gang size",
            decides: "the least served class first, stopping higher classes; consolidates gangs that suffer from spreading",
        },
        requirements: PREEMPTION,
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
        requirements: PREEMPTION,
        defaults: settings::defaults::<TiresiasConfig>,
        make: |value| {
            Ok(Box::new(Tiresias::gittins(settings::read(
                "tiresias-gittins",
                value,
            )?)?))
        },
    },
    Entry {
        info: Info {
            name: "themis",
            family: "fairness",
            citation: "Themis NSDI'20",
            knows: "run time estimates, arrival, gang size",
            decides: "leases GPUs to the jobs that sharing has hurt most, among the worst by efficiency",
        },
        requirements: PREEMPTION,
        defaults: settings::defaults::<ThemisConfig>,
        make: |value| Ok(Box::new(Themis::new(settings::read("themis", value)?)?)),
    },
];
