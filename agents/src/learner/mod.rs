//! Ways to learn, by name.
//!
//! # A learner of one's own
//! One file that implements [`Learning`], as `evolution.rs` does, and one line in [`LEARNERS`], or in a program of one's own
//! [`register_learners`]. A run has its network, Adam and seeds in the [`Trainer`](crate::Trainer); a learner says what one update
//! makes of them.

mod counterfactual;
mod evolution;
mod imitation;
mod learning;
mod ppo;

use std::sync::OnceLock;

use crate::error::Error;
use crate::learner_name::{self, Learner};

pub use crate::counterfactual::Lists;
pub use learning::{Judge, Learning, Play, Plays, Stats};

/// All learners. *One line each*, and one name in [`Learner`].
pub const LEARNERS: [&dyn Learning; 4] = [
    &ppo::Ppo,
    &evolution::Evolution,
    &imitation::Imitation,
    &counterfactual::Counterfactual,
];

static OWN: OnceLock<Vec<&'static dyn Learning>> = OnceLock::new();

/// Says which learners a program has beside ours; once, before anything is read.
///
/// # Errors
/// A name that is taken, or longer than 24 characters; a second call.
pub fn register_learners(learners: Vec<&'static dyn Learning>) -> Result<(), Error> {
    learner_name::register(learners.iter().map(|learner| learner.name()).collect())?;
    OWN.set(learners)
        .map_err(|_| Error::config("train.learner", "registered again", "once in a program"))
}

/// Ours, then the program's own.
pub fn all() -> impl Iterator<Item = &'static dyn Learning> {
    LEARNERS
        .into_iter()
        .chain(OWN.get().into_iter().flatten().copied())
}

/// How a learner learns.
#[must_use]
pub fn way(learner: Learner) -> &'static dyn Learning {
    // Every name is of a row: both come from the same lists.
    all()
        .find(|way| way.name() == learner.name())
        .unwrap_or(LEARNERS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_of_a_row_and_every_row_has_a_name() {
        let names: Vec<&str> = Learner::all().map(Learner::name).collect();
        assert_eq!(names, all().map(Learning::name).collect::<Vec<_>>());
        assert!(Learner::all().all(|learner| way(learner).name() == learner.name()));
    }
}
