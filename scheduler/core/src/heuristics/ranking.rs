//! A heuristic that puts every candidate of a decision in order, for those who decide beside one or leave it to one.

use std::sync::{Mutex, PoisonError};

use super::by_name;
use crate::error::PolicyError;
use crate::policy::{DecisionPoint, Policy};
use crate::problem::Problem;

/// A heuristic by its name, with room to work in.
pub struct Ranking {
    name: String,
    /// Never locked: it is only there because policies are shared between threads before each takes a copy.
    policy: Mutex<Box<dyn Policy>>,
    scores: Vec<f32>,
    order: Vec<(usize, f64)>,
}

impl Ranking {
    /// Makes the heuristic.
    ///
    /// # Errors
    /// An unknown name; the error lists all names and the nearest one.
    pub fn new(name: &str) -> Result<Ranking, Problem> {
        Ok(Ranking {
            name: name.to_owned(),
            policy: Mutex::new(by_name(name)?),
            scores: Vec::new(),
            order: Vec::new(),
        })
    }

    /// The heuristic's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The admissible candidates, the heuristic's choice first. They may be more than it asks for itself.
    ///
    /// # Errors
    /// As [`Policy::score`].
    pub fn order(
        &mut self,
        point: DecisionPoint<'_>,
    ) -> Result<impl Iterator<Item = usize> + use<'_>, PolicyError> {
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
        Ok(self.order.iter().map(|(index, _)| *index))
    }
}

impl Clone for Ranking {
    fn clone(&self) -> Ranking {
        // The name was known when this one was made.
        Ranking::new(&self.name).unwrap_or_else(|error| unreachable!("{error}"))
    }
}

impl std::fmt::Debug for Ranking {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ranking")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
