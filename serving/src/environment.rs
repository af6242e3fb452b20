//! What a learner steps through, whatever the room: rows to choose from, and a reward for what has been booked since the last choice.

use pleach_scheduler::features::View;
use pleach_scheduler::{Problem, Rows};
use serde::{Deserialize, Serialize};

use crate::settings::within;

/// What has become of requests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Served within their targets.
    pub hits: u64,
    /// Served later.
    pub misses: u64,
    /// Refused, dropped or never begun.
    pub refused: u64,
}

impl Tally {
    /// Books what was served.
    pub fn book(&mut self, is_hit: bool) {
        if is_hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }
}

/// What a request earns when it is booked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reward {
    /// Served within its targets.
    pub hit: f64,
    /// Served later.
    pub miss: f64,
    /// Refused, dropped or never begun.
    pub refused: f64,
}

impl Default for Reward {
    /// The return is hits less all others.
    fn default() -> Reward {
        Reward {
            hit: 1.0,
            miss: -1.0,
            refused: -1.0,
        }
    }
}

impl Reward {
    /// # Errors
    /// What a request earns is no number, or a very large one.
    pub fn check(self) -> Result<(), Problem> {
        for (key, value) in [("hit", self.hit), ("miss", self.miss), ("refused", self.refused)] {
            within(&format!("reward.{key}"), value, -1e6, 1e6)?;
        }
        Ok(())
    }

    /// What was earned between two tallies.
    #[must_use]
    pub fn of(self, now: Tally, before: Tally) -> f64 {
        let gained = |figure: fn(&Tally) -> u64| (figure(&now) - figure(&before)) as f64;
        self.hit * gained(|tally| tally.hits)
            + self.miss * gained(|tally| tally.misses)
            + self.refused * gained(|tally| tally.refused)
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Of what was booked since the last step; the last one books all that was in the air.
    pub reward: f64,
    /// Until the next choice, s; in the last step until the end of the episode, or 0 where the room's episodes end with a choice.
    pub dt_s: f64,
    /// Nothing is left to choose.
    pub is_last: bool,
}

/// The loop of a room's `simulate`, one choice at a time.
pub trait Environment: Send + Sync {
    /// What rows show.
    fn view(&self) -> View;

    /// Begins an episode. The same seed is the same episode.
    ///
    /// # Errors
    /// An episode that cannot be drawn.
    fn reset(&mut self, seed: u64) -> Result<(), Problem>;

    /// What is to be decided: as many rows at each step, of which those may be taken that the mask says; the others are zero.
    fn rows(&self) -> Rows<'_>;

    /// Takes a row. In the last step the rows stay as they were.
    ///
    /// # Errors
    /// A row that is not there or may not be taken; a step before the first episode or after the last choice.
    fn step(&mut self, choice: usize) -> Result<Step, Problem>;

    /// Figures of an episode that has ended, by name, once; none before.
    fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>>;
}

/// A step out of turn.
pub fn not_in_an_episode(choice: usize) -> Problem {
    Problem::new("step", choice, "a step of an episode", "Reset it.")
}

/// A row that may not be taken.
pub fn not_a_row(choice: usize, num_choices: usize) -> Problem {
    let allowed = format!("0 to {}", num_choices - 1);
    Problem::new("action", choice, allowed, "Take a row.")
}
