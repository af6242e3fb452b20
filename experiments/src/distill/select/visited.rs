//! States of the cluster as decisions meet them, among which thresholds are chosen.

use pleach_env::simulate;
use pleach_scheduler::PolicyError;
use pleach_scheduler::observation::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES};
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};
use pleach_scheduler::selector::{Selector, SelectorNode, SelectorPolicy};
use rayon::prelude::*;

use crate::distill::parts::Lists;
use crate::error::Error;

/// States of a list that are kept. *Assumed*.
const STATES_MAX: usize = 1000;

/// Global features, scaled.
#[derive(Clone, Debug, Default)]
pub(super) struct Visited {
    /// `[S, G]`
    values: Vec<f32>,
}

/// A selector whose decisions are looked at: every so many, more with time, so that at most [`STATES_MAX`] are kept.
struct Watched {
    policy: SelectorPolicy,
    values: Vec<f32>,
    every: usize,
    number: usize,
}

impl Policy for Watched {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        if self.number.is_multiple_of(self.every) {
            self.values.extend_from_slice(point.observation.global);
        }
        self.number += 1;
        if self.values.len() >= STATES_MAX * NUM_GLOBAL_FEATURES {
            let rows = self.values.chunks_exact(NUM_GLOBAL_FEATURES).step_by(2);
            self.values = rows.flatten().copied().collect();
            self.every *= 2;
        }
        self.policy.score(point, scores)
    }
}

impl Visited {
    /// The states that a selector meets on the first lists.
    pub(super) fn by(selector: &Selector, lists: &Lists, num: usize) -> Result<Visited, Error> {
        let first: Vec<_> = lists.first(num).collect();
        let one = |(workload, sim)| {
            let mut watched = Watched {
                policy: SelectorPolicy::new(selector.clone()),
                values: Vec::new(),
                every: 1,
                number: 0,
            };
            simulate(workload, &sim, &mut watched)?;
            Ok(watched.values)
        };
        let values: Vec<Result<Vec<f32>, Error>> = first.into_par_iter().map(one).collect();
        let values: Vec<Vec<f32>> = values.into_iter().collect::<Result<_, _>>()?;
        Ok(Visited {
            values: values.concat(),
        })
    }

    fn state(&self, state: usize) -> &[f32] {
        &self.values[state * NUM_GLOBAL_FEATURES..][..NUM_GLOBAL_FEATURES]
    }

    /// The value of a global feature, by its index in the joined row.
    pub(super) fn value(&self, state: usize, feature: u16) -> f32 {
        self.state(state)[usize::from(feature) - NUM_CANDIDATE_FEATURES]
    }

    /// The states that come by a node.
    pub(super) fn ending_at(&self, selector: &Selector, place: usize) -> Vec<usize> {
        // In canonical order the nodes below one stand behind it, together.
        let below = place..place + size_of(selector, place);
        let states = 0..self.values.len() / NUM_GLOBAL_FEATURES;
        states
            .filter(|state| below.contains(&selector.walk(self.state(*state))))
            .collect()
    }
}

/// Nodes of the branch at a place.
fn size_of(selector: &Selector, place: usize) -> usize {
    match &selector.nodes()[place] {
        SelectorNode::Leaf { .. } => 1,
        SelectorNode::Split { left, right, .. } => {
            1 + size_of(selector, *left as usize) + size_of(selector, *right as usize)
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Made-up states, different in every feature.
    pub(in crate::distill::select) fn visited(num: usize) -> Visited {
        let values = (0..num * NUM_GLOBAL_FEATURES).map(|number| (number * 7919 % 997) as f32 / 997.0);
        Visited {
            values: values.collect(),
        }
    }
}
