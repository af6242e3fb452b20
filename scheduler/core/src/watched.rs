//! A policy with a visitor that sees what it scores.

use crate::error::PolicyError;
use crate::policy::{ChoiceRule, DecisionPoint, Needs, Policy};

/// Decides as its policy does, and shows every decision point with the scores. An error of the visitor ends the run.
#[derive(Debug)]
pub struct Watched<P, V> {
    policy: P,
    visit: V,
}

impl<P, V> Watched<P, V>
where
    P: Policy,
    V: FnMut(&P, &DecisionPoint<'_>, &[f32]) -> Result<(), PolicyError> + Send,
{
    /// Shows what `policy` scores to `visit`.
    pub fn new(policy: P, visit: V) -> Watched<P, V> {
        Watched { policy, visit }
    }
}

impl<P, V> Policy for Watched<P, V>
where
    P: Policy,
    V: FnMut(&P, &DecisionPoint<'_>, &[f32]) -> Result<(), PolicyError> + Send,
{
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        self.policy.choice_rule()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.policy.score(point, scores)?;
        (self.visit)(&self.policy, &point, scores)
    }

    fn leaf(&self, point: DecisionPoint<'_>, choice: usize) -> Option<u32> {
        self.policy.leaf(point, choice)
    }

    fn reason(&self, point: DecisionPoint<'_>, choice: usize) -> Option<String> {
        self.policy.reason(point, choice)
    }
}
