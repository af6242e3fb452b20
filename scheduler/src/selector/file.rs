//! The file of a selector: JSON that one can read, diff and roll back. `docs/policy-file.md` describes it.
//!
//! It is read as a tree's policy file is, with the same bounds and the same checks: unknown keys, other versions and other feature
//! schemas are refused, and raw thresholds are held to those that run.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::{Selector, SelectorMeta, SelectorNode};
use crate::estimate::Provenance;
use crate::features::FeatureSchema;
use crate::tree::file::node_form::{FileNode, Split};
use crate::tree::file::{check_schema, checked_version, disk, json, lines, syntax, thresholds_hash};
use crate::tree::{NodeError, TreeError};

/// What the key `format` says.
pub const SELECTOR_FORMAT: &str = "pleach-selector";
/// Newest version that is read, and the one that is written.
const VERSION: u64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    schema_hash: String,
    name: String,
    estimates: Vec<Provenance>,
    trained_by: BTreeMap<String, serde_json::Value>,
    schema: Vec<String>,
    /// Absent in files that people wrote.
    #[serde(default)]
    thresholds_hash: Option<String>,
    nodes: Vec<FileNode>,
}

/// What tells a file's format and no more.
#[derive(Deserialize)]
struct Kind {
    format: String,
}

fn written(place: usize, node: &SelectorNode) -> FileNode {
    match node {
        SelectorNode::Split {
            feature,
            threshold,
            left,
            right,
        } => FileNode::of_split(
            place,
            &Split {
                feature: *feature,
                threshold: *threshold,
                left: *left,
                right: *right,
            },
        ),
        SelectorNode::Leaf { id, rule } => FileNode::of_rule(place, *id, rule),
    }
}

fn read_node(place: usize, node: &FileNode, are_as_written: bool) -> Result<SelectorNode, NodeError> {
    node.check_place(place)?;
    if let Some(split) = node.split(are_as_written)? {
        return Ok(SelectorNode::Split {
            feature: split.feature,
            threshold: split.threshold,
            left: split.left,
            right: split.right,
        });
    }
    match node.rule() {
        Some((id, rule)) => Ok(SelectorNode::Leaf {
            id,
            rule: rule.to_owned(),
        }),
        None => Err(NodeError::SelectorShape { found: node.found() }),
    }
}

impl Selector {
    /// The file. The same selector always gives the same bytes; nodes and features take one line each.
    #[must_use]
    pub fn to_json(&self) -> String {
        let schema = FeatureSchema::current();
        let mut text = String::from("{\n");
        let mut put = |key: &str, value: String| text.push_str(&format!("  \"{key}\": {value},\n"));
        put("format", json(&SELECTOR_FORMAT));
        put("version", json(&VERSION));
        put("schema_hash", json(&schema.hash()));
        put("name", json(&self.meta.name));
        put("estimates", json(&self.meta.estimates));
        put("trained_by", json(&self.meta.trained_by));
        put(
            "schema",
            lines(schema.canonical().lines().map(|line| json(&line))),
        );
        let thresholds = self.nodes.iter().filter_map(|node| match node {
            SelectorNode::Split { threshold, .. } => Some(*threshold),
            SelectorNode::Leaf { .. } => None,
        });
        put("thresholds_hash", json(&thresholds_hash(thresholds)));
        let nodes = self.nodes.iter().enumerate();
        let nodes = nodes.map(|(place, node)| json(&written(place, node)));
        text.push_str(&format!("  \"nodes\": {}\n}}\n", lines(nodes)));
        text
    }

    /// Reads a selector.
    ///
    /// # Errors
    /// Whatever [`TreeError`] lists but for what trees alone have; no input makes it panic.
    pub fn from_json(text: &str) -> Result<Selector, TreeError> {
        checked_version(text, SELECTOR_FORMAT, VERSION)?;
        let document: Document = serde_json::from_str(text).map_err(syntax)?;
        check_schema(&document.schema_hash, &document.schema)?;
        let thresholds = document.nodes.iter().filter_map(|node| node.threshold);
        let are_as_written = document.thresholds_hash == Some(thresholds_hash(thresholds));
        let mut nodes = Vec::with_capacity(document.nodes.len());
        for (node, found) in document.nodes.iter().enumerate() {
            let read = read_node(node, found, are_as_written);
            nodes.push(read.map_err(|reason| TreeError::Node { node, reason })?);
        }
        let meta = SelectorMeta {
            name: document.name,
            estimates: document.estimates,
            trained_by: document.trained_by,
        };
        Selector::new(meta, &nodes)
    }

    /// Reads a selector from disk.
    ///
    /// # Errors
    /// As [`Selector::from_json`], and where the file cannot be read.
    pub fn load(path: &Path) -> Result<Selector, TreeError> {
        Selector::from_json(&disk::read(path)?)
    }

    /// Whether a file calls itself a selector, whatever else is wrong with it.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn is_in(path: &Path) -> Result<bool, TreeError> {
        let kind: Result<Kind, _> = serde_json::from_str(&disk::read(path)?);
        Ok(kind.is_ok_and(|kind| kind.format == SELECTOR_FORMAT))
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// [`TreeError::Io`] where the system refuses.
    pub fn save(&self, path: &Path) -> Result<(), TreeError> {
        disk::write(path, &self.to_json())
    }
}
