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

use std::sync::{Mutex, PoisonError};

use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::{PolicyError, heuristics};
use serde::{Deserialize, Serialize};

use crate::error::{Error, SETTING_MAX};

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
pub struct PriorPolicy {
    prior: Prior,
    /// Never locked: it is only there because a network is shared between threads before each takes a copy.
    policy: Mutex<Box<dyn Policy>>,
    scores: Vec<f32>,
    order: Vec<(usize, f64)>,
}

impl PriorPolicy {
    /// Makes the heuristic.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown name, [`Error::Config`] for a weight that is not above 0.
    pub fn new(prior: &Prior) -> Result<PriorPolicy, Error> {
        if !(prior.weight > 0.0 && prior.weight <= SETTING_MAX) {
            return Err(Error::config(
                "prior.weight",
                prior.weight,
                "above 0 and at most 1e12",
            ));
        }
        let policy = heuristics::by_name(&prior.policy)?;
        Ok(PriorPolicy {
            prior: prior.clone(),
            policy: Mutex::new(policy),
            scores: Vec::new(),
            order: Vec::new(),
        })
    }
}

impl Policy for PriorPolicy {
    fn name(&self) -> &str {
        &self.prior.policy
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
        let mask = point.observation.mask;
        self.scores.clear();
        self.scores.resize(mask.len(), 0.0);
        let policy = self.policy.get_mut().unwrap_or_else(PoisonError::into_inner);
        policy.score(point, &mut self.scores)?;
        let tie = policy.choice_rule().tie_key;
        self.order.clear();
        let admissible = (0..mask.len()).filter(|index| mask[*index]);
        self.order
            .extend(admissible.map(|index| (index, tie.of(point.cluster, point.candidates, index))));
        let scores = &self.scores;
        self.order.sort_unstable_by(|(a, key_a), (b, key_b)| {
            let by_score = scores[*b].total_cmp(&scores[*a]);
            by_score.then(key_a.total_cmp(key_b)).then(a.cmp(b))
        });
        let logit = |place: usize| (-self.prior.weight * ln(1.0 + place as f64)) as f32;
        logits.fill(logit(mask.len()));
        for (place, (index, _)) in self.order.iter().enumerate() {
            logits[*index] = logit(place);
        }
        Ok(())
    }
}

impl Clone for PriorPolicy {
    fn clone(&self) -> PriorPolicy {
        // The name was known when this one was made.
        PriorPolicy::new(&self.prior).unwrap_or_else(|error| unreachable!("{error}"))
    }
}

impl std::fmt::Debug for PriorPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.prior.fmt(f)
    }
}
