//! Backfilling with a slot for every waiting job. It plans in the simulator alone: its slots are keyed by rows of the tables, which a
//! daemon makes anew in every round.

mod calendar;
mod conservative;

pub use conservative::{Conservative, ConservativeConfig};

use pleach_scheduler::ActionSet;
use pleach_scheduler::heuristics::Info;

use crate::entry::Entry;
use crate::settings;

/// What the schedulers of sites run and no daemon of ours drives.
pub const BACKFILLING: &[Entry] = &[Entry {
    info: Info {
        name: "conservative",
        family: "backfilling",
        citation: "Mu'alem & Feitelson TPDS'01",
        knows: "arrival, gang size, run time",
        decides: "a slot for every waiting job; a job that delays none goes ahead",
    },
    requirements: ActionSet::NONE,
    defaults: settings::defaults::<ConservativeConfig>,
    make: |value| {
        Ok(Box::new(Conservative::new(settings::read(
            "conservative",
            value,
        )?)?))
    },
}];
