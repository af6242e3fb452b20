//! What makes nodes a selector, and the one order in which they are kept.

use super::node::{MAX_LEAVES, SelectorNode};
use crate::features::FeatureSchema;
use crate::heuristics;
use crate::tree::check::{Shape, ordered, split};
use crate::tree::{NodeError, TreeError, feature_of};

/// Longest part of a wrong name that an error shows, characters.
const SHOWN: usize = 60;

/// Checks what can be seen of one node alone.
pub(super) fn node(node: &SelectorNode) -> Result<(), NodeError> {
    match node {
        SelectorNode::Split {
            feature, threshold, ..
        } => {
            split(*feature, *threshold)?;
            let schema = FeatureSchema::current();
            if usize::from(*feature) < schema.num_candidate() {
                return Err(NodeError::CandidateFeature {
                    name: feature_of(*feature).name,
                    allowed: schema.global.iter().map(|feature| feature.name).collect(),
                });
            }
            Ok(())
        }
        SelectorNode::Leaf { rule, .. } => {
            let names = heuristics::names();
            if names.contains(&rule.as_str()) {
                return Ok(());
            }
            Err(NodeError::UnknownRule {
                name: rule.chars().take(SHOWN).collect(),
                nearest: heuristics::nearest_of(names, rule).unwrap_or_default(),
                allowed: names,
            })
        }
    }
}

/// The nodes depth first, left before right; refuses whatever is not one tree.
pub(super) fn canonical(nodes: &[SelectorNode]) -> Result<Vec<SelectorNode>, TreeError> {
    let shape: Vec<Shape> = nodes
        .iter()
        .map(|node| match node {
            SelectorNode::Leaf { id, .. } => Shape::Leaf(*id),
            SelectorNode::Split { left, right, .. } => Shape::Split([*left, *right]),
        })
        .collect();
    let (order, place_of) = ordered(&shape, 2 * MAX_LEAVES - 1)?;
    let place = |child: u32| place_of[child as usize];
    let renumbered = order.iter().map(|index| match &nodes[*index] {
        SelectorNode::Split {
            feature,
            threshold,
            left,
            right,
        } => SelectorNode::Split {
            feature: *feature,
            // One zero, so that equal selectors have equal bytes.
            threshold: threshold + 0.0,
            left: place(*left),
            right: place(*right),
        },
        leaf @ SelectorNode::Leaf { .. } => leaf.clone(),
    });
    Ok(renumbered.collect())
}
