//! A tree that reads one feature of another candidate or decision: the feature is worth what this loses.
//!
//! A feature of a candidate is shuffled among the candidates about jobs of one decision; one of the cluster is that of an earlier
//! decision. What the weighted key is made of is shuffled too: the order inside tiers is worked out here and handed on as scores.
//!
//! # Source
//! Permutation importance: Breiman, Random Forests, Machine Learning 45, 2001; in a simulator, where a wrong choice has consequences.

use pleach_env::Seed;
use pleach_scheduler::PolicyError;
use pleach_scheduler::features::Group;
use pleach_scheduler::key_weight::weighted_sum_of_row;
use pleach_scheduler::observation::ObservationRef;
use pleach_scheduler::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use pleach_scheduler::tree::TreePolicy;
use rand::seq::SliceRandom as _;
use rand::{Rng, RngExt as _};

/// Values of a feature of the cluster that are kept to draw from.
const KEPT: usize = 1000;

/// A tree and the feature that it does not see right.
pub(super) struct Shuffled {
    tree: TreePolicy,
    feature: usize,
    rng: Box<dyn Rng + Send>,
    earlier: Vec<f32>,
    global: Vec<f32>,
    candidates: Vec<f32>,
}

impl Shuffled {
    /// `feature` is a place in the joined row.
    pub(super) fn new(tree: TreePolicy, feature: usize, seed: Seed) -> Shuffled {
        Shuffled {
            tree,
            feature,
            rng: Box::new(seed.stream("distill/shuffled", feature as u64)),
            earlier: Vec::new(),
            global: Vec::new(),
            candidates: Vec::new(),
        }
    }

    fn shuffle(&mut self, point: &DecisionPoint<'_>) {
        self.global.clear();
        self.global.extend_from_slice(point.observation.global);
        self.candidates.clear();
        self.candidates.extend_from_slice(point.observation.candidates);
        let schema = self.tree.tree().schema();
        let place = schema.place(self.feature);
        if schema.features[self.feature].group == Group::Row {
            let about_jobs = point
                .candidates
                .iter()
                .enumerate()
                .filter(|(_, row)| row.job.is_some());
            let places: Vec<usize> = about_jobs
                .map(|(row, _)| row * point.observation.width + place)
                .collect();
            let mut values: Vec<f32> = places.iter().map(|place| self.candidates[*place]).collect();
            values.shuffle(&mut self.rng);
            for (place, value) in places.into_iter().zip(values) {
                self.candidates[place] = value;
            }
            return;
        }
        let own = self.global[place];
        let drawn = self.rng.random_range(0..=self.earlier.len());
        self.global[place] = self.earlier.get(drawn).copied().unwrap_or(own);
        if self.earlier.len() < KEPT {
            self.earlier.push(own);
        } else if let Some(kept) = self.earlier.get_mut(drawn) {
            *kept = own;
        }
    }
}

impl Policy for Shuffled {
    fn name(&self) -> &str {
        "shuffled"
    }

    fn needs(&self) -> Needs {
        self.tree.needs()
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule {
            key_weights: &[],
            ..self.tree.choice_rule()
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.shuffle(&point);
        let point = DecisionPoint {
            observation: ObservationRef {
                global: &self.global,
                candidates: &self.candidates,
                ..point.observation
            },
            ..point
        };
        self.tree.score(point, scores)?;
        let weights = self.tree.choice_rule().key_weights;
        if weights.is_empty() {
            return Ok(());
        }
        // The least sum first inside a tier; what is about no job after all others of its tier.
        let key = |index: usize| match point.candidates.get(index) {
            Some(row) if row.job.is_some() => weighted_sum_of_row(weights, point.observation.row(index)),
            _ => f64::INFINITY,
        };
        let mut order: Vec<(f32, f64, usize)> = scores
            .iter()
            .enumerate()
            .map(|(index, score)| (*score, key(index), index))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1)));
        let mut place = 0;
        for (at, (score, key, index)) in order.iter().enumerate() {
            let is_new = at > 0 && (order[at - 1].0, order[at - 1].1) != (*score, *key);
            place += u16::from(is_new);
            scores[*index] = -f32::from(place);
        }
        Ok(())
    }
}
