//! The residual mode: the network corrects a heuristic instead of replacing it.
//!
//! The heuristic orders the admissible candidates; the one in place k (0 is its choice) has the prior logit
//! `-weight ln(1 + k)`, to which the network adds its own. The end of the pointer starts at zero, so the first policy *is* the
//! heuristic among the network's candidates. (A heuristic that looks at other jobs or sizes than these may choose otherwise when it
//! is alone.) Drawn from, it takes place k with
//! a chance in proportion to `(1 + k)^-weight` (Zipf's law), so it tries the heuristic's runners-up first.
//!
//! # Source
//! Residual policy learning: Silver et al., 2018; Johannink et al., ICRA'19. Zipf's law over places is ours.

use pleach_scheduler::PolicyError;
use pleach_scheduler::heuristics::Ranking;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};
use pleach_scheduler::portable_math::ln;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::{SETTING_MAX, refused};

/// Which heuristic a network corrects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// The heuristic's name.
    pub policy: String,
    /// How far the network must lift a candidate over the heuristic's choice: by `weight ln(1 + k)`, above 0.
    pub weight: f64,
}

/// A heuristic as prior logits.
#[derive(Clone, Debug)]
pub struct PriorPolicy {
    weight: f64,
    ranking: Ranking,
}

impl PriorPolicy {
    /// Makes the heuristic.
    ///
    /// # Errors
    /// An [`Error`] for an unknown name, An [`Error`] for a weight that is not above 0.
    pub fn new(prior: &Prior) -> Result<PriorPolicy, Error> {
        if !(prior.weight > 0.0 && prior.weight <= SETTING_MAX) {
            return Err(refused("prior.weight", prior.weight, "above 0 and at most 1e12"));
        }
        Ok(PriorPolicy {
            weight: prior.weight,
            ranking: Ranking::new(&prior.policy)?,
        })
    }
}

impl Policy for PriorPolicy {
    fn name(&self) -> &str {
        self.ranking.name()
    }

    /// Those of the heuristic are not asked: the candidates are the network's.
    fn needs(&self) -> Needs {
        Needs {
            observation: false,
            ..Needs::full()
        }
    }

    /// Writes one prior logit per candidate; masked ones get that of the last place.
    fn score(&mut self, point: DecisionPoint<'_>, logits: &mut [f32]) -> Result<(), PolicyError> {
        let logit = |place: usize| (-self.weight * ln(1.0 + place as f64)) as f32;
        logits.fill(logit(logits.len()));
        for (place, index) in self.ranking.order(point)?.enumerate() {
            logits[index] = logit(place);
        }
        Ok(())
    }
}
