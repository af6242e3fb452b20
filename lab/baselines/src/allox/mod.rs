//! AlloX: which job runs on which GPU in which place, by the matching of least total time.

mod matching;
mod planner;

pub use planner::{Allox, AlloxConfig};

use pleach_scheduler::ActionSet;
use pleach_scheduler::heuristics::Info;

use crate::shared::settings;
use pleach_dealing::Entry;

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[Entry {
    info: Info {
        name: "allox",
        family: "heterogeneity-aware, not preemptive",
        citation: "AlloX EuroSys'20, min-cost bipartite matching",
        knows: "speed on each GPU type, gang size, estimate",
        decides: "GPU type and place in its queue of every waiting job so that the mean JCT is least",
    },
    requirements: ActionSet::NONE,
    defaults: settings::defaults::<AlloxConfig>,
    make: |value| Ok(Box::new(Allox::new(settings::read("allox", value)?)?)),
}];
