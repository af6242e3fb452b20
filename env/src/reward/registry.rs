//! Sums over time that a program has beside ours: a function of what a step has gained, by its name in rewards.
//!
//! A program says once which they are, before it reads a configuration, and they never change after that: so they are a part of the
//! program as its code is, and no result depends on when they are asked for.

use std::sync::OnceLock;

use pleach_scheduler::Problem;

use super::quantities::names;
use crate::world::Integrals;

/// A sum over time of a program's own. It must add up: what it is of two steps together is the sum of both.
#[derive(Clone, Debug)]
pub struct OwnReward {
    /// Name in expressions: letters, digits and `_`.
    pub name: String,
    /// What is paid for what a step has gained; its unit is 1.
    pub of: fn(&Integrals) -> f64,
}

static OWN: OnceLock<Vec<OwnReward>> = OnceLock::new();

/// Says which rewards a program has; once, before anything is read.
///
/// # Errors
/// A name that is taken or is none; a second call.
pub fn register_rewards(own: Vec<OwnReward>) -> Result<(), Problem> {
    let known = names();
    for (place, one) in own.iter().enumerate() {
        let is_name = one.name.starts_with(char::is_alphabetic)
            && one
                .name
                .chars()
                .all(|letter| letter.is_alphanumeric() || letter == '_');
        let is_taken =
            known.contains(&one.name.as_str()) || own[..place].iter().any(|other| other.name == one.name);
        Problem::refuse_if(
            !is_name || is_taken,
            "reward",
            &one.name,
            "a name of letters, digits and _ that nothing else has",
            "give it another name",
        )?;
    }
    OWN.set(own).map_err(|_| {
        Problem::new(
            "reward",
            "registered again",
            "once in a program",
            "name all of them in one call",
        )
    })
}

pub(super) fn own() -> &'static [OwnReward] {
    OWN.get().map_or(&[], Vec::as_slice)
}

pub(super) fn place_of(name: &str) -> Option<usize> {
    own().iter().position(|own| own.name == name)
}
