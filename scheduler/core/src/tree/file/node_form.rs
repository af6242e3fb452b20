//! One node as a line of the policy file.

use serde::{Deserialize, Serialize};

use super::split_form::WrittenSplit;
use crate::features::FeatureSchema;
use crate::tree::error::NodeError;
use crate::tree::node::Node;

/// Every key that a node of a tree may have.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threshold: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
}

impl FileNode {
    /// The name of the feature that it asks for.
    pub(super) fn feature(&self) -> Option<&str> {
        self.feature.as_deref()
    }

    /// Refuses a node that stands in another place than it says.
    fn check_place(&self, place: usize) -> Result<(), NodeError> {
        match self.node.filter(|stated| *stated != place) {
            Some(stated) => Err(NodeError::Place { stated }),
            None => Ok(()),
        }
    }

    /// The split, where it has the keys of one and no other. `are_as_written` says that no threshold was changed: then one that
    /// contradicts its raw value gives way to it.
    fn split(&self, schema: &FeatureSchema, are_as_written: bool) -> Result<Option<Node>, NodeError> {
        let (Some(feature), Some(threshold), Some(left), Some(right)) =
            (&self.feature, self.threshold, self.left, self.right)
        else {
            return Ok(None);
        };
        if self.has_any(&["leaf", "score", "samples", "weight"]) {
            return Ok(None);
        }
        let written = WrittenSplit {
            feature: feature.clone(),
            threshold,
            raw: self.raw,
            unit: self.unit.clone(),
        };
        let (feature, threshold) = written.read(schema, are_as_written)?;
        Ok(Some(Node::Split {
            feature,
            threshold,
            left,
            right,
        }))
    }

    fn has_any(&self, keys: &[&str]) -> bool {
        self.keys().iter().any(|key| keys.contains(key))
    }

    /// The keys that are there, but for its place.
    fn keys(&self) -> Vec<&'static str> {
        let keys = [
            ("feature", self.feature.is_some()),
            ("threshold", self.threshold.is_some()),
            ("raw", self.raw.is_some()),
            ("unit", self.unit.is_some()),
            ("left", self.left.is_some()),
            ("right", self.right.is_some()),
            ("leaf", self.leaf.is_some()),
            ("score", self.score.is_some()),
            ("samples", self.samples.is_some()),
            ("weight", self.weight.is_some()),
        ];
        let there = keys.into_iter().filter_map(|(key, there)| there.then_some(key));
        there.collect()
    }

    /// What a node that is neither split nor leaf has.
    fn found(&self) -> String {
        format!("this one has [{}]", self.keys().join(", "))
    }
}

/// The form of a node in the file.
pub(super) fn written(schema: &FeatureSchema, place: usize, node: &Node) -> FileNode {
    match *node {
        Node::Split {
            feature,
            threshold,
            left,
            right,
        } => {
            let written = WrittenSplit::of(schema, feature, threshold);
            FileNode {
                node: Some(place),
                feature: Some(written.feature),
                threshold: Some(threshold),
                raw: written.raw,
                unit: written.unit,
                left: Some(left),
                right: Some(right),
                ..FileNode::default()
            }
        }
        Node::Leaf {
            id,
            score,
            samples,
            weight,
        } => FileNode {
            node: Some(place),
            leaf: Some(id),
            score: Some(score),
            samples: Some(samples),
            weight: Some(weight),
            ..FileNode::default()
        },
    }
}

/// `are_as_written` as of [`FileNode::split`].
pub(super) fn read_node(
    schema: &FeatureSchema,
    place: usize,
    node: &FileNode,
    are_as_written: bool,
) -> Result<Node, NodeError> {
    node.check_place(place)?;
    if let Some(split) = node.split(schema, are_as_written)? {
        return Ok(split);
    }
    match (node.leaf, node.score, node.samples, node.weight) {
        (Some(id), Some(score), Some(samples), Some(weight))
            if node.keys() == ["leaf", "score", "samples", "weight"] =>
        {
            Ok(Node::Leaf {
                id,
                score,
                samples,
                weight,
            })
        }
        _ => Err(NodeError::Shape { found: node.found() }),
    }
}
