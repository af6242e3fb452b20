//! A selector that decides.

use super::needs::asks_for;
use super::{Selector, SelectorNode};
use crate::error::PolicyError;
use crate::heuristics::{Ranking, by_name};
use crate::observation::NUM_GLOBAL_FEATURES;
use crate::policy::{DecisionPoint, Needs, Policy};

/// A rule of a selector, ready to run.
#[derive(Clone, Debug)]
struct Rule {
    ranking: Ranking,
    /// What it asks for where it decides alone.
    own: Needs,
}

/// A selector that decides: the tree picks the heuristic, and the heuristic's first candidate is the choice.
///
/// Scores are places in the heuristic's order, all different, so nothing is left to a tie key and the choice rule is the plain one.
#[derive(Clone, Debug)]
pub struct SelectorPolicy {
    selector: Selector,
    needs: Needs,
    rules: Vec<Rule>,
    /// The rule of each node; of splits it says nothing. `[num_nodes]`
    rule_of: Vec<usize>,
}

impl SelectorPolicy {
    /// Makes a selector ready to run.
    #[must_use]
    pub fn new(selector: Selector) -> SelectorPolicy {
        let names = selector.rules();
        // A selector is valid, so every name is known and none is left out here.
        let rules = names.iter().filter_map(|name| {
            let (ranking, own) = (Ranking::new(name).ok()?, by_name(name).ok()?.needs());
            Some(Rule { ranking, own })
        });
        let place = |node: &SelectorNode| match node {
            SelectorNode::Leaf { rule, .. } => names.iter().position(|name| name == rule).unwrap_or(0),
            SelectorNode::Split { .. } => 0,
        };
        SelectorPolicy {
            needs: selector.needs(),
            rules: rules.collect(),
            rule_of: selector.nodes().iter().map(place).collect(),
            selector,
        }
    }

    /// The selector.
    #[must_use]
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// The admissible candidates in the order of the rule that decides here: those that it asks for first.
    ///
    /// # Errors
    /// Where the observation was not filled.
    pub(super) fn order(&mut self, point: DecisionPoint<'_>) -> Result<Vec<usize>, PolicyError> {
        check_shape(point.observation.global)?;
        let place = self.selector.walk(point.observation.global);
        let Rule { ranking, own } = &mut self.rules[self.rule_of[place]];
        let mut order: Vec<usize> = ranking.order(point)?.collect();
        // Stable: within both parts the rule's own order.
        order.sort_by_key(|index| {
            let candidate = point.candidates.get(*index);
            !candidate.is_some_and(|candidate| asks_for(own, point.cluster, candidate))
        });
        Ok(order)
    }
}

/// Refuses an observation without the cluster's features.
pub(super) fn check_shape(global: &[f32]) -> Result<(), PolicyError> {
    let (expected, found) = (NUM_GLOBAL_FEATURES, global.len());
    if expected == found {
        return Ok(());
    }
    Err(PolicyError::Shape { expected, found })
}

impl Policy for SelectorPolicy {
    fn name(&self) -> &str {
        "selector"
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        scores.fill(-(scores.len() as f32));
        for (place, index) in self.order(point)?.into_iter().enumerate() {
            scores[index] = -(place as f32);
        }
        Ok(())
    }

    fn leaf(&self, point: DecisionPoint<'_>, _choice: usize) -> Option<u32> {
        match self
            .selector
            .nodes()
            .get(self.selector.walk(point.observation.global))?
        {
            SelectorNode::Leaf { id, .. } => Some(*id),
            SelectorNode::Split { .. } => None,
        }
    }
}
