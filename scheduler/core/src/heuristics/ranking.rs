//! A heuristic that puts every candidate of a decision in order, for policies that decide beside one or leave decisions to it.

use super::heuristic::Heuristic;
use super::heuristic_of;
use crate::error::PolicyError;
use crate::policy::{DecisionPoint, Policy as _};
use crate::problem::Problem;

/// A heuristic by its name, with room to work in.
#[derive(Clone, Debug)]
pub struct Ranking {
    policy: Heuristic,
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
            policy: heuristic_of(name)?,
            scores: Vec::new(),
            order: Vec::new(),
        })
    }

    /// The heuristic's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.policy.name()
    }

    /// The admissible candidates, the heuristic's choice first. They may be more than it asks for itself.
    ///
    /// # Errors
    /// As [`Policy::score`](crate::Policy::score).
    pub fn order(
        &mut self,
        point: DecisionPoint<'_>,
    ) -> Result<impl Iterator<Item = usize> + use<'_>, PolicyError> {
        let mask = point.observation.mask;
        self.scores.clear();
        self.scores.resize(mask.len(), 0.0);
        self.policy.score(point, &mut self.scores)?;
        let tie = self.policy.choice_rule().tie_key;
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
