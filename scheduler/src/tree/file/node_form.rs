//! One node as a line of the policy file.

use serde::{Deserialize, Serialize};

use super::split_form::WrittenSplit;
use crate::tree::error::NodeError;
use crate::tree::node::Node;

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threshold: Option<f32>,
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

/// The form of a node in the file.
pub(super) fn written(place: usize, node: &Node) -> FileNode {
    match *node {
        Node::Split {
            feature,
            threshold,
            left,
            right,
        } => {
            let split = WrittenSplit::of(feature, threshold);
            FileNode {
                node: Some(place),
                feature: Some(split.feature),
                threshold: Some(threshold),
                raw: split.raw,
                unit: split.unit,
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

/// `are_as_written` says that no threshold was changed: then one that contradicts its raw value gives way to it.
pub(super) fn read_node(place: usize, node: FileNode, are_as_written: bool) -> Result<Node, NodeError> {
    if let Some(stated) = node.node
        && stated != place
    {
        return Err(NodeError::Place { stated });
    }
    match node {
        FileNode {
            feature: Some(name),
            threshold: Some(threshold),
            raw,
            unit,
            left: Some(left),
            right: Some(right),
            leaf: None,
            score: None,
            samples: None,
            weight: None,
            ..
        } => {
            let written = WrittenSplit {
                feature: name,
                threshold,
                raw,
                unit,
            };
            let (feature, threshold) = written.read(are_as_written)?;
            Ok(Node::Split {
                feature,
                threshold,
                left,
                right,
            })
        }
        FileNode {
            feature: None,
            threshold: None,
            raw: None,
            unit: None,
            left: None,
            right: None,
            leaf: Some(id),
            score: Some(score),
            samples: Some(samples),
            weight: Some(weight),
            ..
        } => Ok(Node::Leaf {
            id,
            score,
            samples,
            weight,
        }),
        other => {
            let keys: Vec<&str> = [
                ("feature", other.feature.is_some()),
                ("threshold", other.threshold.is_some()),
                ("raw", other.raw.is_some()),
                ("unit", other.unit.is_some()),
                ("left", other.left.is_some()),
                ("right", other.right.is_some()),
                ("leaf", other.leaf.is_some()),
                ("score", other.score.is_some()),
                ("samples", other.samples.is_some()),
                ("weight", other.weight.is_some()),
            ]
            .into_iter()
            .filter_map(|(key, there)| there.then_some(key))
            .collect();
            Err(NodeError::Shape {
                found: format!("this one has [{}]", keys.join(", ")),
            })
        }
    }
}
