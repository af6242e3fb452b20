//! The policy file: a tree as JSON that one can read, diff and roll back. `docs/policy-file.md` describes it.
//!
//! The reader trusts nothing. It bounds the size, refuses unknown keys, other versions and other feature schemas, and
//! whatever is not a tree. Numbers that are there for the human reader (the raw threshold, its unit, the node's own
//! number) are checked against those that run, so that the file cannot say one thing and do another. A hash over the scaled
//! thresholds tells which of the two a person changed: where it still agrees, it was the raw one, and that is what runs.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{NodeError, TreeError};
use super::needs::WrittenNeeds;
use super::{Node, Tree, TreeMeta, feature_of};
use crate::estimate::Provenance;
use crate::features::FeatureSchema;
use crate::policy::TieKey;

/// What the key `format` says.
pub const FORMAT: &str = "pleach-tree";
/// What the key `version` says.
pub(crate) const VERSION: u64 = 1;
/// Largest file that is read, bytes; the largest tree needs a quarter of it.
pub const MAX_BYTES: u64 = 1 << 20;
/// Most lines of differences in a refusal.
const MAX_DIFFERENCES: usize = 24;
/// Relative difference between a raw threshold in a file and the one that runs; the writer rounds to six digits.
const RAW_TOLERANCE: f64 = 1e-4;

#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    schema_hash: String,
    name: String,
    tie_key: TieKey,
    needs: WrittenNeeds,
    estimates: Vec<Provenance>,
    trained_by: std::collections::BTreeMap<String, serde_json::Value>,
    schema: Vec<String>,
    /// Absent in files of earlier versions.
    #[serde(default)]
    thresholds_hash: Option<String>,
    nodes: Vec<FileNode>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f32>,
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

impl Tree {
    /// The policy file. The same tree always gives the same bytes; nodes and features take one line each.
    #[must_use]
    pub fn to_json(&self) -> String {
        let schema = FeatureSchema::current();
        let TreeMeta {
            name,
            tie_key,
            needs,
            estimates,
            trained_by,
        } = &self.meta;
        let mut text = String::from("{\n");
        let mut put = |key: &str, value: String| text.push_str(&format!("  \"{key}\": {value},\n"));
        put("format", json(&FORMAT));
        put("version", json(&VERSION));
        put("schema_hash", json(&schema.hash()));
        put("name", json(name));
        put("tie_key", json(tie_key));
        put("needs", json(&WrittenNeeds::from(needs)));
        put("estimates", json(estimates));
        put("trained_by", json(trained_by));
        put(
            "schema",
            lines(schema.canonical().lines().map(|line| json(&line))),
        );
        put("thresholds_hash", json(&thresholds_hash(self.thresholds())));
        let nodes = self
            .nodes
            .iter()
            .enumerate()
            .map(|(place, node)| json(&written(place, node)));
        text.push_str(&format!("  \"nodes\": {}\n}}\n", lines(nodes)));
        text
    }

    fn thresholds(&self) -> impl Iterator<Item = f32> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Split { threshold, .. } => Some(*threshold),
            Node::Leaf { .. } => None,
        })
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// Whatever [`TreeError`] lists; no input makes it panic.
    pub fn from_json(text: &str) -> Result<Tree, TreeError> {
        let bytes = text.len() as u64;
        if bytes > MAX_BYTES {
            return Err(TreeError::TooLarge {
                bytes,
                max: MAX_BYTES,
            });
        }
        let syntax = |error: serde_json::Error| TreeError::Json(error.to_string());
        let header: Header = serde_json::from_str(text).map_err(syntax)?;
        if header.format != FORMAT {
            return Err(TreeError::Format {
                found: header.format.chars().take(40).collect(),
                expected: FORMAT,
            });
        }
        if header.version != VERSION {
            return Err(TreeError::Version {
                found: header.version,
                supported: VERSION,
            });
        }
        let document: Document = serde_json::from_str(text).map_err(syntax)?;
        check_schema(&document.schema_hash, &document.schema)?;
        let thresholds = document.nodes.iter().filter_map(|node| node.threshold);
        let are_as_written = document.thresholds_hash == Some(thresholds_hash(thresholds));
        let mut nodes = Vec::with_capacity(document.nodes.len());
        for (node, found) in document.nodes.into_iter().enumerate() {
            nodes.push(
                read_node(node, found, are_as_written).map_err(|reason| TreeError::Node { node, reason })?,
            );
        }
        let meta = TreeMeta {
            name: document.name,
            tie_key: document.tie_key,
            needs: document.needs.read()?,
            estimates: document.estimates,
            trained_by: document.trained_by,
        };
        Tree::new(meta, &nodes)
    }

    /// Reads a policy file from disk.
    ///
    /// # Errors
    /// As [`Tree::from_json`], and where the file cannot be read.
    pub fn load(path: &Path) -> Result<Tree, TreeError> {
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|source| io(path, source))?;
        // One byte more than allowed, so that a file of exactly the bound is told from a larger one.
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| io(path, source))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(TreeError::TooLarge {
                bytes: bytes.len() as u64,
                max: MAX_BYTES,
            });
        }
        let text = String::from_utf8(bytes).map_err(|error| TreeError::Json(error.to_string()))?;
        Tree::from_json(&text)
    }

    /// Writes the policy file: to a temporary name beside it, synced, then renamed, so that nobody ever reads half a
    /// policy.
    ///
    /// # Errors
    /// [`TreeError::Io`] where the system refuses.
    pub fn save(&self, path: &Path) -> Result<(), TreeError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".tmp");
        let temporary = Path::new(&name);
        let write = || {
            let mut file = File::create(temporary)?;
            file.write_all(self.to_json().as_bytes())?;
            file.sync_all()?;
            fs::rename(temporary, path)
        };
        write().map_err(|source| io(path, source))
    }
}

fn io(path: &Path, source: std::io::Error) -> TreeError {
    TreeError::Io {
        path: path.display().to_string(),
        source,
    }
}

/// The JSON of plain data of ours, which always has one.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data has a JSON form")
}

fn lines(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.map(|item| format!("    {item}")).collect();
    format!("[\n{}\n  ]", items.join(",\n"))
}

/// A number rounded to six significant digits, for readers.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn written(place: usize, node: &Node) -> FileNode {
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
fn read_node(place: usize, node: FileNode, are_as_written: bool) -> Result<Node, NodeError> {
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

/// Hex SHA-256 over the scaled thresholds in the order of nodes, four bytes each, little-endian.
fn thresholds_hash(thresholds: impl Iterator<Item = f32>) -> String {
    let mut digest = Sha256::new();
    thresholds.for_each(|threshold| digest.update(threshold.to_le_bytes()));
    let digest: [u8; 32] = digest.finalize().into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a file that was made for other features and shows every line that is in one of the two only.
fn check_schema(hash: &str, file: &[String]) -> Result<(), TreeError> {
    let schema = FeatureSchema::current();
    let canonical = schema.canonical();
    let program: Vec<&str> = canonical.lines().collect();
    if hash == schema.hash() && program.iter().eq(file.iter()) {
        return Ok(());
    }
    let clip = |line: &str| line.chars().take(120).collect::<String>();
    let only_file = file.iter().filter(|line| !program.contains(&line.as_str()));
    let only_program = program
        .iter()
        .filter(|line| !file.iter().any(|other| other == *line));
    let mut differences: Vec<String> = only_file
        .map(|line| format!("  only in the file:    {}", clip(line)))
        .chain(only_program.map(|line| format!("  only in the program: {}", clip(line))))
        .collect();
    if differences.is_empty() {
        differences.push("  the same features in another order, or a hash that is not theirs".into());
    }
    let rest = differences.len().saturating_sub(MAX_DIFFERENCES);
    differences.truncate(MAX_DIFFERENCES);
    if rest > 0 {
        differences.push(format!("  and {rest} more"));
    }
    Err(TreeError::Schema {
        file: clip(hash),
        program: schema.hash().into(),
        differences: differences.join("\n") + "\n",
    })
}

#[cfg(test)]
mod tests;
