//! Why a selector left a decision to a rule, in words: the whole path with the cluster's values, then the rule's own place for the
//! candidate.

use std::fmt;

use super::policy::{SelectorPolicy, check_shape};
use super::text::decides;
use super::{SelectorNode, value_of};
use crate::error::PolicyError;
use crate::policy::DecisionPoint;
use crate::tree::Condition;
use crate::tree::explain::action;

/// Why a candidate was chosen, or was not.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectorExplanation {
    /// What the candidate does.
    pub action: String,
    /// Id of the leaf.
    pub leaf: u32,
    /// The heuristic that decides.
    pub rule: String,
    /// The path, from the root.
    pub path: Vec<Condition>,
    /// Admissible candidates that the heuristic puts first; 0 for the one that is chosen. None where the candidate is not
    /// admissible.
    pub num_better: Option<usize>,
}

impl SelectorPolicy {
    /// Explains the place of one candidate.
    ///
    /// # Errors
    /// As `score`: where the observation was not filled.
    ///
    /// # Panics
    /// If there is no candidate `choice`.
    pub fn explain(
        &self,
        point: &DecisionPoint<'_>,
        choice: usize,
    ) -> Result<SelectorExplanation, PolicyError> {
        let num_candidates = point.candidates.len();
        assert!(choice < num_candidates, "candidate {choice} of {num_candidates}");
        check_shape(point.observation.global)?;
        let order = self.clone().order(*point)?;
        let (mut place, mut path) = (0, Vec::new());
        let (leaf, rule) = loop {
            match &self.selector().nodes()[place] {
                SelectorNode::Leaf { id, rule } => break (*id, rule.clone()),
                SelectorNode::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let scaled = value_of(point.observation.global, *feature);
                    place = if scaled <= *threshold { *left } else { *right } as usize;
                    path.push(Condition::met(*feature, *threshold, scaled));
                }
            }
        };
        Ok(SelectorExplanation {
            action: action(point.candidates, choice),
            leaf,
            rule,
            path,
            num_better: order.iter().position(|index| *index == choice),
        })
    }
}

impl fmt::Display for SelectorExplanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SelectorExplanation {
            action, leaf, rule, ..
        } = self;
        writeln!(out, "{action}: {rule} decides (leaf {leaf})")?;
        for step in &self.path {
            let Condition {
                feature,
                condition,
                value,
                doc,
            } = step;
            writeln!(out, "  {condition} ({feature} is {value}): {doc}")?;
        }
        writeln!(out, "  {rule}: {}", decides(rule))?;
        match self.num_better {
            Some(0) => Ok(()),
            Some(num) => writeln!(out, "  not chosen: {rule} puts {num} before it"),
            None => writeln!(out, "  not chosen: it is not allowed now"),
        }
    }
}
