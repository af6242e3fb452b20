//! Where on a cluster of shared GPUs a task goes, so that what is left stays of use.

mod fgd;
mod fragment;
mod mix;
mod rivals;
#[cfg(test)]
mod tests;

pub use fgd::{Fgd, FgdConfig, Score};
pub use fragment::{Room, TaskClass};
pub use mix::Mix;

use pleach_scheduler::ActionSet;
use pleach_scheduler::heuristics::Info;

use crate::shared::settings;
use pleach_dealing::Entry;

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[Entry {
    info: Info {
        name: "fgd",
        family: "fractional packing",
        citation: "FGD ATC'23",
        knows: "what tasks ask for, and how often which kind comes",
        decides: "the oldest that fits, on the node and GPU where it adds least to the expected fragmentation",
    },
    requirements: ActionSet::NONE,
    defaults: settings::defaults::<FgdConfig>,
    make: |value| Ok(Box::new(Fgd::new(settings::read("fgd", value)?)?)),
}];
