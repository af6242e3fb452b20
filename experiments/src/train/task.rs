//! What units are asked to play, and for which run: a part of a generation.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What is to be played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// Name, version and format of the program that asks.
    pub(super) program: String,
    /// Generations made before.
    pub(super) generation: u64,
    /// Hex SHA-256 of the state.
    pub(super) state: String,
    /// Hex SHA-256 of the run's settings.
    pub(super) settings: String,
    /// Parts of the generation, the training process's own among them.
    pub(super) num_units: usize,
    /// Plays of the generation.
    pub(super) num_plays: usize,
    /// The heuristic against which bounds are held, if any are.
    pub(super) baseline: Option<String>,
}

impl Task {
    /// The plays of a part.
    pub(super) fn part(&self, unit: usize) -> Range<usize> {
        let at = |unit: usize| unit * self.num_plays / self.num_units;
        at(unit)..at(unit + 1)
    }
}
