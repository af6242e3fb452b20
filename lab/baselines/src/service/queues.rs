//! The queues of Tiresias and its other settings.

use pleach_scheduler::ConfigError;
use serde::{Deserialize, Serialize};

use crate::shared::settings::check;

/// Settings of [`Tiresias`](super::Tiresias).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TiresiasConfig {
    /// Service at which a job leaves each queue but the last, GPU·s; ascending, 1 to 16 of them.
    pub thresholds_gpu_s: Vec<f64>,
    /// Quantum of the Gittins index, GPU·s, > 0.
    pub quantum_gpu_s: f64,
    /// A waiting job of a later queue goes back to the first when it has waited so many times what it has run; none = never.
    pub promote_after: Option<f64>,
    /// Gangs of a class that runs slower than this part of its speed on more nodes than necessary wait for a consolidated
    /// placement. 0 = none, 0 to 1. *Assumed.*
    pub consolidate_below: f64,
}

impl Default for TiresiasConfig {
    fn default() -> TiresiasConfig {
        TiresiasConfig {
            thresholds_gpu_s: vec![3250.0, 7200.0, 18_000.0],
            quantum_gpu_s: 3250.0,
            promote_after: None,
            consolidate_below: 0.8,
        }
    }
}

impl TiresiasConfig {
    pub(super) fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let limits = &self.thresholds_gpu_s;
        let ascending = limits.is_sorted_by(|a, b| a < b) && limits.iter().all(|limit| *limit > 0.0);
        let shown = format!("{limits:?}");
        let ok = ascending && (1..=16).contains(&limits.len());
        check(
            name,
            "thresholds_gpu_s",
            shown,
            ok,
            "1 to 16 ascending numbers above 0",
        )?;
        let quantum = self.quantum_gpu_s;
        let ok = quantum > 0.0 && quantum <= 1e12;
        check(name, "quantum_gpu_s", quantum, ok, "above 0, at most 1e12")?;
        let knob = self.promote_after.unwrap_or(1.0);
        let ok = knob > 0.0 && knob <= 1e9;
        check(
            name,
            "promote_after",
            knob,
            ok,
            "above 0, at most 1e9, or left out",
        )?;
        let part = self.consolidate_below;
        check(
            name,
            "consolidate_below",
            part,
            (0.0..=1.0).contains(&part),
            "0 to 1",
        )
    }

    /// The queue of a job that has received so much, from 0.
    pub(super) fn queue_of(&self, attained_gpu_s: f64) -> usize {
        // A microsecond of rounding must not keep a job in its queue until the next event.
        let passed = |limit: &&f64| attained_gpu_s >= **limit - 1e-3;
        self.thresholds_gpu_s.iter().take_while(passed).count()
    }
}
