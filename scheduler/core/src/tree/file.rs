//! The policy file: a tree as JSON that one can read, diff and roll back. `docs/policy-file.md` describes it.
//!
//! The reader trusts nothing. It bounds the size, refuses unknown keys, other versions, columns that are others here, and
//! whatever is not a tree. Numbers that are there for the human reader (the raw threshold, its unit, the node's own
//! number) are checked against those that run, so that the file cannot say one thing and do another. A hash over the scaled
//! thresholds tells which of the two a person changed: where it still agrees, it was the raw one, and that is what runs.

pub(crate) mod columns;
pub(crate) mod disk;
pub(crate) mod node_form;
mod sealed;
mod split_form;

use std::mem::discriminant;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::disk::MAX_BYTES;
use self::node_form::{FileNode, read_node, written};
use self::sealed::{FileGolden, FileVisits};
use super::certificate::{Certificate, Property};
use super::error::{KeyError, TreeError};
use super::needs::WrittenNeeds;
use super::{Node, Tree, TreeMeta};
use crate::estimate::Provenance;
use crate::features::FeatureSchema;
use crate::guards::Guards;
use crate::key_weight::KeyWeight;
use crate::policy::TieKey;
use crate::wide_gangs::WideGangs;

/// What the key `format` says.
pub const FORMAT: &str = "pleach-tree";
/// Newest version that is read. What is written says 1 where it has nothing that came with 2, so that the same tree has the same
/// bytes as ever and programs from before can read it.
pub(crate) const VERSION: u64 = 3;
/// Newest version in which columns are those of the first view, all of them listed. Later ones list those that are read.
const VERSION_OF_VIEWS: u64 = 2;

#[derive(Deserialize)]
struct Header {
    format: String,
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
/// What may be absent came with version 2, unless another is said.
struct Document {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    /// Up to version 2.
    #[serde(default)]
    schema_hash: Option<String>,
    /// From version 3 on; absent = the decisions of a pass.
    #[serde(default)]
    rows: Option<String>,
    /// From version 3 on: the columns that it reads.
    #[serde(default)]
    reads: Option<Vec<String>>,
    name: String,
    tie_key: TieKey,
    #[serde(default)]
    key_weights: Option<Vec<FileKeyWeight>>,
    needs: WrittenNeeds,
    #[serde(default)]
    guards: Option<Guards>,
    #[serde(default, deserialize_with = "sealed::fallback")]
    fallback: Option<String>,
    #[serde(default, deserialize_with = "sealed::gpu_types_max")]
    gpu_types_max: Option<u32>,
    #[serde(default, deserialize_with = "sealed::wide_gangs")]
    wide_gangs: Option<WideGangs>,
    estimates: Vec<Provenance>,
    trained_by: std::collections::BTreeMap<String, serde_json::Value>,
    /// Up to version 2.
    #[serde(default)]
    schema: Option<Vec<String>>,
    /// Absent in files of earlier versions.
    #[serde(default)]
    thresholds_hash: Option<String>,
    nodes: Vec<FileNode>,
    #[serde(default)]
    certificates: Option<FileCertificates>,
    #[serde(default, deserialize_with = "sealed::golden")]
    golden: Option<FileGolden>,
    #[serde(default, deserialize_with = "sealed::visits")]
    visits: Option<FileVisits>,
}

impl Document {
    /// That the columns that it reads are those of this program.
    fn check_columns(&self, schema: &FeatureSchema, version: u64) -> Result<(), TreeError> {
        let of_nodes = self.nodes.iter().filter_map(FileNode::feature);
        let of_key = self
            .key_weights
            .iter()
            .flatten()
            .map(|term| term.feature.as_str());
        let names = of_nodes.chain(of_key);
        if version <= VERSION_OF_VIEWS {
            let reason = "from version 3 on: say \"version\": 3";
            columns::absent(
                &[("rows", self.rows.is_some()), ("reads", self.reads.is_some())],
                reason,
            )?;
            let hash = columns::needed("schema_hash", self.schema_hash.as_ref())?;
            let lines = columns::needed("schema", self.schema.as_ref())?;
            return columns::check_listed(schema, hash, lines, names);
        }
        let old = [
            ("schema_hash", self.schema_hash.is_some()),
            ("schema", self.schema.is_some()),
        ];
        columns::absent(&old, "up to version 2: list what is read under reads")?;
        columns::check_rows(schema, self.rows.as_deref())?;
        columns::check_read(schema, columns::needed("reads", self.reads.as_ref())?, names)
    }
}

/// What a file says about its tree, and what a reader checks.
struct Claims {
    certificates: Option<FileCertificates>,
    golden: Option<FileGolden>,
    visits: Option<FileVisits>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileCertificates {
    tree_hash: String,
    list: Vec<Certificate>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileKeyWeight {
    feature: String,
    weight: f32,
}

impl Tree {
    /// The policy file. The same tree always gives the same bytes; nodes and features take one line each.
    #[must_use]
    pub fn to_json(&self) -> String {
        let schema = self.schema();
        let TreeMeta {
            name,
            tie_key,
            key_weights,
            needs,
            estimates,
            trained_by,
        } = &self.meta;
        let mut text = String::from("{\n");
        let mut put = |key: &str, value: String| text.push_str(&format!("  \"{key}\": {value},\n"));
        put("format", json(&FORMAT));
        let is_plain = key_weights.is_empty()
            && self.certificates.is_empty()
            && self.guards.is_none()
            && !self.is_sealed();
        let version = match (self.is_of_first_view(), is_plain) {
            (true, true) => 1,
            (true, false) => VERSION_OF_VIEWS,
            (false, _) => VERSION,
        };
        put("version", json(&version));
        if version <= VERSION_OF_VIEWS {
            put("schema_hash", json(&schema.hash()));
        } else if !self.is_of_decisions() {
            put("rows", json(&schema.name));
        }
        put("name", json(name));
        put("tie_key", json(tie_key));
        if !key_weights.is_empty() {
            let written = |term: &KeyWeight| FileKeyWeight {
                feature: self.feature(term.feature).name.into(),
                weight: term.weight,
            };
            put(
                "key_weights",
                lines(key_weights.iter().map(|term| json(&written(term)))),
            );
        }
        put("needs", json(&WrittenNeeds::from(needs)));
        if !self.guards.is_none() {
            put("guards", json(&self.guards));
        }
        if let Some(fallback) = &self.fallback {
            put("fallback", json(fallback));
        }
        if let Some(most) = self.gpu_types_max {
            put("gpu_types_max", json(&most));
        }
        if let Some(wide) = &self.wide_gangs {
            put("wide_gangs", json(wide));
        }
        put("estimates", json(estimates));
        put("trained_by", json(trained_by));
        if version <= VERSION_OF_VIEWS {
            let canonical = schema.canonical();
            put("schema", lines(canonical.lines().map(|line| json(&line))));
        } else {
            put("reads", lines(self.lines_read().iter().map(json)));
        }
        put("thresholds_hash", json(&thresholds_hash(self.thresholds())));
        let nodes = self
            .nodes
            .iter()
            .enumerate()
            .map(|(place, node)| json(&written(self.schema(), place, node)));
        text.push_str(&format!("  \"nodes\": {}", lines(nodes)));
        if !self.certificates.is_empty() {
            let list = lines(self.certificates.iter().map(json));
            let hash = json(&self.hash());
            text.push_str(&format!(
                ",\n  \"certificates\": {{\"tree_hash\": {hash}, \"list\": {list}}}"
            ));
        }
        if let Some(golden) = &self.golden {
            text.push_str(&format!(
                ",\n  \"golden\": {}",
                json(&FileGolden::of(self, golden))
            ));
        }
        if let Some(visits) = &self.visits {
            let written = FileVisits::of(self, visits);
            text.push_str(&format!(",\n  \"visits\": {}", json(&written)));
        }
        text.push_str("\n}\n");
        text
    }

    /// Hex SHA-256 over what decides: candidates, guards, where it steps aside, key, weights and nodes as they are written, and the columns: the first view's, or
    /// those that it reads.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.features_hash());
        digest.update(json(&WrittenNeeds::from(&self.meta.needs)));
        digest.update(json(&self.meta.tie_key));
        if !self.guards.is_none() {
            digest.update(json(&self.guards));
        }
        if let Some(most) = self.gpu_types_max {
            digest.update(format!(
                "{most} {}\n",
                self.fallback.as_deref().unwrap_or_default()
            ));
        }
        if let Some(wide) = &self.wide_gangs {
            digest.update(json(wide));
        }
        for term in &self.meta.key_weights {
            digest.update(format!("{} {}\n", self.feature(term.feature).name, term.weight));
        }
        for (place, node) in self.nodes.iter().enumerate() {
            digest.update(json(&written(self.schema(), place, node)));
        }
        hex(digest)
    }

    /// That each certificate is one of this tree and true of it.
    fn check_certificates(&self, found: &FileCertificates) -> Result<(), TreeError> {
        let fail = |place: String, reason: String| Err(TreeError::Certificate { place, reason });
        let hash = self.hash();
        if found.tree_hash != hash {
            let stated: String = found.tree_hash.chars().take(64).collect();
            let reason = format!("they are of the tree {stated}, and this is {hash}");
            return fail(".tree_hash".into(), reason);
        }
        for (place, own) in found.list.iter().enumerate() {
            // Each is proved anew, which takes time: no more than one of each property, and of each leaf.
            let is_again = |other: &Certificate| match (other.property, own.property) {
                (Property::LeafIsReached { leaf }, Property::LeafIsReached { leaf: own }) => leaf == own,
                (other, own) => discriminant(&other) == discriminant(&own),
            };
            if found.list[..place].iter().any(is_again) {
                return fail(
                    format!(".list[{place}]"),
                    format!("that {} stands there twice", own.property),
                );
            }
            if self.verdict(own.property) != own.verdict {
                let reason = format!("that {} is not as it says", own.property);
                return fail(format!(".list[{place}]"), reason);
            }
        }
        Ok(())
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
        Tree::from_json_over(FeatureSchema::current(), text)
    }

    /// Reads a policy file over the columns of another schema than a pass's.
    ///
    /// # Errors
    /// As [`Tree::from_json`].
    pub fn from_json_over(schema: &'static FeatureSchema, text: &str) -> Result<Tree, TreeError> {
        let (mut tree, claims) = Tree::read(schema, text)?;
        if let Some(found) = claims.certificates {
            tree.check_certificates(&found)?;
            tree = tree.with_certificates(found.list);
        }
        if let Some(found) = claims.golden {
            tree.golden = Some(found.read(&tree)?);
        }
        if let Some(found) = claims.visits {
            tree.visits = Some(found.read(&tree)?);
        }
        Ok(tree)
    }

    /// Reads a policy file without its certificates, to make them anew. Golden vectors and visits stay as far as they still are of
    /// this tree: an edit leaves them behind.
    ///
    /// # Errors
    /// As [`Tree::from_json`].
    pub fn from_json_uncertified(text: &str) -> Result<Tree, TreeError> {
        let (mut tree, claims) = Tree::read(FeatureSchema::current(), text)?;
        tree.golden = claims.golden.and_then(|found| found.read(&tree).ok());
        tree.visits = claims.visits.and_then(|found| found.read(&tree).ok());
        Ok(tree)
    }

    fn read(schema: &'static FeatureSchema, text: &str) -> Result<(Tree, Claims), TreeError> {
        let version = checked_version(text, FORMAT, VERSION)?;
        let document: Document = serde_json::from_str(text).map_err(syntax)?;
        document.check_columns(schema, version)?;
        if version == 1 && document.certificates.is_some() {
            let reason = "a file of version 1 has none".into();
            return Err(TreeError::Certificate {
                place: String::new(),
                reason,
            });
        }
        let key_weights = match document.key_weights {
            Some(_) if version == 1 => {
                return Err(TreeError::Key {
                    term: 0,
                    reason: KeyError::Version,
                });
            }
            found => read_key_weights(schema, &found.unwrap_or_default())?,
        };
        let thresholds = document.nodes.iter().filter_map(|node| node.threshold);
        let are_as_written = document.thresholds_hash == Some(thresholds_hash(thresholds));
        let mut nodes = Vec::with_capacity(document.nodes.len());
        for (node, found) in document.nodes.into_iter().enumerate() {
            nodes.push(
                read_node(schema, node, &found, are_as_written)
                    .map_err(|reason| TreeError::Node { node, reason })?,
            );
        }
        let meta = TreeMeta {
            name: document.name,
            tie_key: document.tie_key,
            key_weights,
            needs: document.needs.read()?,
            estimates: document.estimates,
            trained_by: document.trained_by,
        };
        let guards = document.guards.unwrap_or_default();
        if version == 1 && document.guards.is_some() {
            return Err(TreeError::Value {
                key: "guards",
                value: json(&guards),
                allowed: "none in a file of version 1".into(),
            });
        }
        let claims = Claims {
            certificates: document.certificates,
            golden: document.golden,
            visits: document.visits,
        };
        if version == 1 {
            sealed::refuse_in_version_1(&[
                ("fallback", document.fallback.is_some()),
                ("gpu_types_max", document.gpu_types_max.is_some()),
                ("wide_gangs", document.wide_gangs.is_some()),
                ("golden", claims.golden.is_some()),
                ("visits", claims.visits.is_some()),
            ])?;
        }
        let tree = Tree::over(schema, meta, &nodes)?
            .with_guards(guards)?
            .with_fallback(document.fallback)?
            .with_gpu_types_max(document.gpu_types_max)?
            .with_wide_gangs(document.wide_gangs)?;
        Ok((tree, claims))
    }

    /// Reads a policy file from disk.
    ///
    /// # Errors
    /// As [`Tree::from_json`], and where the file cannot be read.
    pub fn load(path: &Path) -> Result<Tree, TreeError> {
        let text = disk::read(path)?;
        Tree::from_json(&text)
    }

    /// Writes the policy file: to a temporary name beside it, synced, then renamed, so that no program ever reads half a policy.
    ///
    /// # Errors
    /// [`TreeError::Io`] where the system refuses.
    pub fn save(&self, path: &Path) -> Result<(), TreeError> {
        disk::write(path, &self.to_json())
    }
}

pub(crate) fn syntax(error: serde_json::Error) -> TreeError {
    TreeError::Json(error.to_string())
}

/// The version of a file of a format.
///
/// # Errors
/// More than [`MAX_BYTES`], what is no JSON, another format, a version that is not 1 to `newest`.
pub(crate) fn checked_version(text: &str, format: &'static str, newest: u64) -> Result<u64, TreeError> {
    let bytes = text.len() as u64;
    if bytes > MAX_BYTES {
        return Err(TreeError::TooLarge {
            bytes,
            max: MAX_BYTES,
        });
    }
    let header: Header = serde_json::from_str(text).map_err(syntax)?;
    if header.format != format {
        return Err(TreeError::Format {
            found: header.format.chars().take(40).collect(),
            expected: format,
        });
    }
    if !(1..=newest).contains(&header.version) {
        return Err(TreeError::Version {
            found: header.version,
            supported: newest,
        });
    }
    Ok(header.version)
}

/// The JSON of plain data of ours, which always has one.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data has a JSON form")
}

pub(crate) fn lines(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.map(|item| format!("    {item}")).collect();
    format!("[\n{}\n  ]", items.join(",\n"))
}

fn read_key_weights(schema: &FeatureSchema, terms: &[FileKeyWeight]) -> Result<Vec<KeyWeight>, TreeError> {
    let read = |(term, found): (usize, &FileKeyWeight)| {
        let Some(feature) = schema.joined_index(&found.feature) else {
            let name = found.feature.chars().take(60).collect();
            return Err(TreeError::Key {
                term,
                reason: KeyError::Unknown { name },
            });
        };
        Ok(KeyWeight {
            feature: feature as u16,
            weight: found.weight,
        })
    };
    terms.iter().enumerate().map(read).collect()
}

/// Hex SHA-256 over the scaled thresholds in the order of nodes, four bytes each, little-endian.
pub(crate) fn thresholds_hash(thresholds: impl Iterator<Item = f32>) -> String {
    let mut digest = Sha256::new();
    thresholds.for_each(|threshold| digest.update(threshold.to_le_bytes()));
    hex(digest)
}

pub(crate) fn hex(digest: Sha256) -> String {
    let digest: [u8; 32] = digest.finalize().into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
