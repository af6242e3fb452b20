//! Settings of Gandiva.

use pleach_scheduler::ConfigError;
use serde::{Deserialize, Serialize};

use crate::shared::settings::check;

/// Settings of [`Gandiva`](super::Gandiva).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GandivaConfig {
    /// Length of a turn, s, 1 to 1e6.
    pub quantum_s: f64,
    /// Part of a turn that restarts may take, above 0, at most 1: turns are longer where restarts are dear. *Assumed.*
    pub overhead_max: f64,
    /// How long a pair is tried, s, 1 to 1e6. *Assumed:* a turn.
    pub trial_s: f64,
    /// A pair is kept if the sum of its speeds is at least this, 0 to 2.
    pub keep_above: f64,
    /// A gang moves if its speed becomes at least so many times what it is, 1 or more. *Assumed.*
    pub move_gain: f64,
    /// Gangs that move at the end of one turn, at most. *Assumed.*
    pub moves_max: usize,
}

impl Default for GandivaConfig {
    fn default() -> GandivaConfig {
        GandivaConfig {
            quantum_s: 60.0,
            overhead_max: 0.05,
            trial_s: 60.0,
            keep_above: 1.0,
            move_gain: 1.05,
            moves_max: 4,
        }
    }
}

impl GandivaConfig {
    /// Refuses a value out of its range.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let name = "gandiva";
        for (key, value) in [("quantum_s", self.quantum_s), ("trial_s", self.trial_s)] {
            check(name, key, value, (1.0..=1e6).contains(&value), "1 to 1e6 s")?;
        }
        let part = self.overhead_max;
        let ok = part > 1e-6 && part <= 1.0;
        check(name, "overhead_max", part, ok, "1e-6 to 1")?;
        let sum = self.keep_above;
        check(name, "keep_above", sum, (0.0..=2.0).contains(&sum), "0 to 2")?;
        let gain = self.move_gain;
        check(name, "move_gain", gain, (1.0..=1e6).contains(&gain), "1 to 1e6")
    }
}
