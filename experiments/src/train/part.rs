//! A unit's part of a generation as it comes back, and what it is held to before it is believed.
//!
//! A part says by which program, for which settings and from which state it was played, and it is refused where it has another
//! number of plays than was asked for, another number of bounds, or a figure that no run can have. What is wrong and yet possible
//! only a replay shows, see [`replayed`].

use std::ops::Range;

use pleach_env::Seed;
use pleach_scheduler::Problem;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use super::constraint::Constraint;
use super::objective::{self, Objective};
use super::population::Play;
use super::task::Task;
use crate::error::Error;

/// Of so many plays of a part one is played again. *Assumed*: a thirty-second more work for what others play.
const REPLAY_EVERY: usize = 32;
/// Most passes of one play. *Assumed*: far beyond any run, and the sum of eight million of them has room in 64 bits.
const NUM_PASSES_MAX: u64 = 1 << 40;

/// A part that was played. Figures are the bits of their numbers, so that none is rounded on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// As in the [`Task`].
    pub(super) program: String,
    /// As in the [`Task`].
    pub(super) settings: String,
    /// As in the [`Task`].
    pub(super) state: String,
    /// Loss, passes, excess over each bound.
    plays: Vec<(u64, u64, Vec<u64>)>,
}

impl Part {
    /// The answer to a task.
    pub(super) fn of(task: &Task, plays: &[Play]) -> Part {
        let bits = |play: &Play| {
            let excess = play.excess.iter().map(|value| value.to_bits()).collect();
            (play.loss.to_bits(), play.num_passes, excess)
        };
        Part {
            program: task.program.clone(),
            settings: task.settings.clone(),
            state: task.state.clone(),
            plays: plays.iter().map(bits).collect(),
        }
    }

    /// The plays of a unit, where they answer the task and may be figures of runs.
    ///
    /// # Errors
    /// [`Error::Problem`] with the unit, what was expected and what was found.
    pub(super) fn checked(self, task: &Task, unit: usize, limits: &Limits) -> Result<Vec<Play>, Error> {
        for (what, expected, found) in [
            ("program", &task.program, &self.program),
            ("settings", &task.settings, &self.settings),
        ] {
            if expected != found {
                return Err(refused(unit, what, expected.clone(), found.clone()));
            }
        }
        let asked = task.part(unit).len();
        if self.plays.len() != asked {
            let counted = |count: usize| format!("{count} plays");
            return Err(refused(unit, "part", counted(asked), counted(self.plays.len())));
        }
        let play = |(number, (loss, num_passes, excess)): (usize, (u64, u64, Vec<u64>))| {
            let play = Play {
                loss: f64::from_bits(loss),
                num_passes,
                excess: excess.into_iter().map(f64::from_bits).collect(),
            };
            limits.check(&play).map_err(|(expected, found)| {
                refused(unit, &format!("figures of play {number}"), expected, found)
            })?;
            Ok(play)
        };
        task.part(unit).zip(self.plays).map(play).collect()
    }
}

/// What figures of plays can be at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// Largest absolute loss.
    loss_max: f64,
    /// Bounds that are kept.
    num_bounds: usize,
    /// Largest absolute excess over a bound.
    excess_max: f64,
}

impl Limits {
    /// Under an objective, with the bounds that are kept.
    pub(super) fn of(objective: &Objective, constraint: Option<&Constraint>) -> Limits {
        Limits {
            loss_max: objective::loss_max(objective),
            num_bounds: constraint.map_or(0, |constraint| constraint.metrics.len()),
            excess_max: constraint.map_or(0.0, Constraint::excess_max),
        }
    }

    /// What was expected and found, where a figure is out of its range.
    fn check(&self, play: &Play) -> Result<(), (String, String)> {
        let is_within = |value: f64, max: f64| value.is_finite() && value.abs() <= max;
        if !is_within(play.loss, self.loss_max) {
            let expected = format!("a loss of at most {:.0} either way", self.loss_max);
            return Err((expected, play.loss.to_string()));
        }
        if play.num_passes > NUM_PASSES_MAX {
            let expected = format!("at most {NUM_PASSES_MAX} passes");
            return Err((expected, play.num_passes.to_string()));
        }
        if play.excess.len() != self.num_bounds {
            let expected = format!("an excess over each of {} bounds", self.num_bounds);
            return Err((expected, play.excess.len().to_string()));
        }
        let beyond = play
            .excess
            .iter()
            .find(|excess| !is_within(**excess, self.excess_max));
        beyond.map_or(Ok(()), |excess| {
            let expected = format!("an excess of at most {:.0} either way", self.excess_max);
            Err((expected, excess.to_string()))
        })
    }
}

/// The plays of a part that the training process plays itself: one at random in every stretch of 32, at least one.
pub(super) fn replayed(part: Range<usize>, seed: Seed, unit: usize) -> Vec<usize> {
    let mut random = seed.stream("replay", unit as u64);
    let num_drawn = part.len().div_ceil(REPLAY_EVERY);
    let at = |index: usize| part.start + index * part.len() / num_drawn;
    (0..num_drawn)
        .map(|index| random.random_range(at(index)..at(index + 1)))
        .collect()
}

/// Holds a play of a unit to the same play of the training process.
///
/// # Errors
/// [`Error::Problem`] with the unit and both where a bit differs.
pub(super) fn compare(unit: usize, number: usize, own: &Play, theirs: &Play) -> Result<(), Error> {
    let bits = |play: &Play| -> (u64, u64, Vec<u64>) {
        let excess = play.excess.iter().map(|value| value.to_bits()).collect();
        (play.loss.to_bits(), play.num_passes, excess)
    };
    if bits(own) == bits(theirs) {
        return Ok(());
    }
    let said = |play: &Play| {
        let (loss, passes) = (play.loss, play.num_passes);
        format!("loss {loss:?}, {passes} passes, excess {:?}", play.excess)
    };
    let what = format!("figures of play {number}, played again here");
    Err(refused(unit, &what, said(own), said(theirs)))
}

fn refused(unit: usize, what: &str, expected: String, found: String) -> Error {
    Problem::contract(format!("unit {unit} of the training: {what}"), expected, found, "No figure of this generation was used. Take the unit away, or run it with the same program on a machine that \
               computes alike, and go on with --resume."
            ).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_play_of_every_stretch_is_played_again_and_each_part_has_its_own_draws() {
        for (part, num_drawn) in [(0..0, 0), (3..4, 1), (10..42, 1), (10..43, 2), (100..1124, 32)] {
            let drawn = replayed(part.clone(), Seed(5), 1);
            assert_eq!(drawn.len(), num_drawn);
            assert!(drawn.iter().all(|number| part.contains(number)), "{drawn:?}");
            assert!(drawn.is_sorted_by(|a, b| a < b), "{drawn:?}");
        }
        let of = |seed: u64, unit: usize| replayed(0..1024, Seed(seed), unit);
        assert_eq!(of(5, 1), of(5, 1));
        assert_ne!(of(5, 1), of(5, 2));
        assert_ne!(of(5, 1), of(6, 1));
    }
}
