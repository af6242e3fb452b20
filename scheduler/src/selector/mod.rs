//! A selector: a small tree over the state of the *cluster*, whose leaves name heuristics.
//!
//! At each decision the tree reads the global features, which are the same for all candidates, and the heuristic of the leaf where it
//! ends decides. So "with little waiting be patient, under load be greedy" is two leaves, and every decision is one of a rule that
//! people know. A [`Selector`] is valid by construction: [`Selector::new`] and the reader refuse everything else, and nodes are kept
//! in one canonical order, so the same selector always has the same bytes.
//!
//! # What is deliberately not here
//! No learning (`pleach distill select` does that), and no features of candidates: how one job compares with another is the
//! heuristics' business.
//!
//! # Source
//! Choosing a dispatching rule by the state of the shop is old in manufacturing (Priore et al., AI EDAM 28, 2014, survey it). The
//! form, the union of needs and what is offered to each rule are ours.

mod check;
mod explain;
mod file;
mod needs;
mod node;
mod policy;
mod text;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod policy_tests;

use std::collections::BTreeMap;

pub use explain::SelectorExplanation;
pub use file::SELECTOR_FORMAT;
pub use node::{MAX_LEAVES, SelectorNode};
pub use policy::SelectorPolicy;

use crate::cluster::Capabilities;
use crate::estimate::Provenance;
use crate::observation::NUM_CANDIDATE_FEATURES;
use crate::policy::Needs;
use crate::tree::{TreeError, check as tree_check, needs as tree_needs};

/// What a selector's file says beside its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectorMeta {
    /// Name for tables and logs; 1 to 200 bytes, no control characters.
    pub name: String,
    /// Where the estimates came from that it was learnt with; empty = not known.
    pub estimates: Vec<Provenance>,
    /// What made it: command, configuration, versions. Free; not read by the program.
    pub trained_by: BTreeMap<String, serde_json::Value>,
}

/// A valid selector in canonical order: depth first, left before right.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    meta: SelectorMeta,
    nodes: Vec<SelectorNode>,
}

impl Selector {
    /// Checks the parts and brings the nodes into canonical order. Node 0 is the root. With at most [`MAX_LEAVES`] leaves no path
    /// has more than 63 splits.
    ///
    /// # Errors
    /// The first thing that is wrong: a name, a feature that is not one of the cluster, a threshold that is out of range, a rule that
    /// is no heuristic, nodes that are no tree or too many.
    pub fn new(mut meta: SelectorMeta, nodes: &[SelectorNode]) -> Result<Selector, TreeError> {
        tree_check::name(&meta.name)?;
        meta.estimates.sort_unstable();
        meta.estimates.dedup();
        for (node, found) in nodes.iter().enumerate() {
            check::node(found).map_err(|reason| TreeError::Node { node, reason })?;
        }
        let nodes = check::canonical(nodes)?;
        Ok(Selector { meta, nodes })
    }

    /// What is said beside the nodes.
    #[must_use]
    pub fn meta(&self) -> &SelectorMeta {
        &self.meta
    }

    /// All nodes; the root is first, every child comes after its parent.
    #[must_use]
    pub fn nodes(&self) -> &[SelectorNode] {
        &self.nodes
    }

    /// Number of leaves.
    #[must_use]
    pub fn num_leaves(&self) -> usize {
        self.nodes.len().div_ceil(2)
    }

    /// Splits on the longest path.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut depths = vec![0; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            if let SelectorNode::Split { left, right, .. } = node {
                depths[*left as usize] = depths[place] + 1;
                depths[*right as usize] = depths[place] + 1;
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// The heuristics that its leaves name, each once, in the order of the leaves.
    #[must_use]
    pub fn rules(&self) -> Vec<&str> {
        let mut rules: Vec<&str> = Vec::new();
        for node in &self.nodes {
            if let SelectorNode::Leaf { rule, .. } = node
                && !rules.contains(&rule.as_str())
            {
                rules.push(rule);
            }
        }
        rules
    }

    /// The candidates that it chooses among: all that one of its rules wants, and the features.
    #[must_use]
    pub fn needs(&self) -> Needs {
        needs::union_of(&self.rules())
    }

    /// Whether a cluster can do what its rules may choose.
    ///
    /// # Errors
    /// [`TreeError::Capability`] with the first capability that is missing; `policy` names the selector.
    pub fn check_against(&self, policy: &str, capabilities: Capabilities) -> Result<(), TreeError> {
        tree_needs::check_against(&self.needs(), policy, capabilities)
    }

    /// Place of the leaf where the global features of an observation end.
    ///
    /// # Panics
    /// If there are fewer than the schema has.
    #[must_use]
    pub fn walk(&self, global: &[f32]) -> usize {
        let mut place = 0;
        while let SelectorNode::Split {
            feature,
            threshold,
            left,
            right,
        } = &self.nodes[place]
        {
            place = if value_of(global, *feature) <= *threshold {
                *left as usize
            } else {
                *right as usize
            };
        }
        place
    }
}

/// The scaled value of a global feature, by its index in the joined row.
fn value_of(global: &[f32], feature: u16) -> f32 {
    global[usize::from(feature) - NUM_CANDIDATE_FEATURES]
}
