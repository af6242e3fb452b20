//! One node as a line of the policy file.

use serde::{Deserialize, Serialize};

use crate::features::FeatureSchema;
use crate::tree::error::NodeError;
use crate::tree::feature_of;
use crate::tree::node::Node;

/// Relative difference between a raw threshold in a file and the one that runs; the writer rounds to six digits.
const RAW_TOLERANCE: f64 = 1e-4;

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

/// A number rounded to six significant digits, for readers.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
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
            let found = feature_of(feature);
            FileNode {
                node: Some(place),
                feature: Some(found.name.into()),
                threshold: Some(threshold),
                raw: Some(rounded(found.scale.invert(threshold))),
                unit: Some(found.unit.into()),
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
            let Some(index) = FeatureSchema::current().joined_index(&name) else {
                let name = name.chars().take(60).collect();
                return Err(NodeError::UnknownFeature { name });
            };
            if !threshold.is_finite() {
                return Err(NodeError::NotFinite { what: "threshold" });
            }
            let found = feature_of(index as u16);
            let meant = found.scale.invert(threshold);
            let differs = raw.is_some_and(|raw| (raw - meant).abs() > RAW_TOLERANCE * meant.abs() + 1e-6);
            let is_edited = differs && are_as_written;
            let threshold = match raw {
                Some(raw) if is_edited && (f64::from(found.min)..f64::from(found.max)).contains(&raw) => {
                    found.encode(raw as f32)
                }
                Some(raw) if is_edited => {
                    return Err(NodeError::RawRange {
                        raw,
                        min: found.min,
                        max: found.max,
                        unit: found.unit,
                    });
                }
                _ => threshold,
            };
            if (differs && !is_edited) || unit.as_ref().is_some_and(|unit| unit != found.unit) {
                let unit: String = unit.unwrap_or_default().chars().take(20).collect();
                return Err(NodeError::Raw {
                    shown: format!("{} {unit}", raw.unwrap_or(meant)),
                    threshold,
                    meant: format!("{} {}", rounded(meant), found.unit),
                });
            }
            Ok(Node::Split {
                feature: index as u16,
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
