//! A tree that says why, at the decision point of an environment.

use pleach_scheduler::Guards;
use pleach_scheduler::PolicyError;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy, TieKey, choice_of};
use pleach_scheduler::tree::TreePolicy;

/// Decides as its tree does, and keeps the reason for one candidate.
pub(crate) struct Explaining {
    tree: TreePolicy,
    choice: Option<usize>,
    found: Result<String, String>,
}

impl Explaining {
    /// Explains `choice`, or what the tree itself chooses.
    pub(crate) fn new(tree: TreePolicy, choice: Option<usize>) -> Explaining {
        Explaining {
            tree,
            choice,
            found: Err("there is nothing to decide".into()),
        }
    }

    /// The reason in words.
    pub(crate) fn text(self) -> Result<String, String> {
        self.found
    }
}

impl Policy for Explaining {
    fn name(&self) -> &str {
        self.tree.name()
    }

    fn needs(&self) -> Needs {
        self.tree.needs()
    }

    fn tie_key(&self) -> TieKey {
        self.tree.tie_key()
    }

    fn key_weights(&self) -> &[KeyWeight] {
        self.tree.key_weights()
    }

    fn guards(&self) -> Guards {
        self.tree.guards()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.tree.score(point, scores)?;
        let own = choice_of(&self.tree, &point, scores);
        let choice = self.choice.or(own).unwrap_or(0);
        let num_candidates = point.candidates.len();
        self.found = if choice < num_candidates {
            self.tree
                .explain(&point, choice)
                .map(|found| Ok(found.to_string()))?
        } else {
            Err(format!(
                "action = {choice}: allowed is 0 to {}",
                num_candidates - 1
            ))
        };
        Ok(())
    }
}
