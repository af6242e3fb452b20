//! Schedulers built on predicted run times.

mod a_srpt;
mod heavy_edge;
mod roomiest;
mod virtual_machine;

pub use a_srpt::{ASrpt, ASrptConfig};

use pleach_scheduler::ActionSet;
use pleach_scheduler::heuristics::Info;

use crate::shared::settings;
use pleach_dealing::Entry;

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[Entry {
    info: Info {
        name: "a-srpt",
        family: "prediction",
        citation: "A-SRPT INFOCOM'25",
        knows: "run time estimates, gang size, locality",
        decides: "the order in which one imagined machine would complete the jobs; gangs on the roomiest nodes, or a wait for better ones",
    },
    requirements: ActionSet::NONE,
    defaults: settings::defaults::<ASrptConfig>,
    make: |value| Ok(Box::new(ASrpt::new(settings::read("a-srpt", value)?)?)),
}];
