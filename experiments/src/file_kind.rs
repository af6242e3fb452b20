//! What a file is that was given where another kind is meant, so that its message names it and what to do with it.
//!
//! Looked at only where reading it as what was meant has failed.

use std::io::Read as _;
use std::path::Path;

use pleach_env::workload::import::{Format, site::NodeTable};
use pleach_tables::open_unpacked;

use crate::error::Error;

/// So much of a file says what it is, bytes.
const START_BYTES: u64 = 1 << 16;

/// Kinds of files that commands take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A list of jobs: an export, or one of the published or own formats.
    Jobs,
    /// What scontrol, sinfo or kubectl prints of nodes.
    Nodes,
    /// A description of a cluster.
    Cluster,
    /// `site.toml` of `pleach run`.
    Site,
    /// `settings.toml` of a training.
    Settings,
    /// How a table is read.
    Mapping,
    /// The configuration of a sweep.
    Grid,
    /// The manifest of a sweep.
    Manifest,
    /// A policy: a tree, a formula, a network.
    Policy,
}

impl FileKind {
    /// What a file is; none for a folder and for what is nothing that is known.
    #[must_use]
    pub fn of(path: &Path) -> Option<FileKind> {
        let mut bytes = Vec::new();
        let file = open_unpacked(path).ok()?;
        // What cannot be unpacked to its end has a beginning all the same.
        let _ = file.take(START_BYTES).read_to_end(&mut bytes);
        let is_network = [b"PLEACHNW".as_slice(), b"PLEACHCK", &[0x08]]
            .iter()
            .any(|start| bytes.starts_with(start));
        if is_network {
            return Some(FileKind::Policy);
        }
        let text = String::from_utf8_lossy(&bytes);
        if text.trim_start().starts_with('{')
            && let Some(kind) = of_json(&text)
        {
            return Some(kind);
        }
        if let Some(kind) = toml::from_str(&text).ok().and_then(|table| of_toml(&table)) {
            return Some(kind);
        }
        if Format::of_file(path).is_ok() {
            return Some(FileKind::Jobs);
        }
        NodeTable::read(path).is_ok().then_some(FileKind::Nodes)
    }

    /// What went wrong with a file that was meant to be of this kind: that it is another, where it is, and else what was said.
    #[must_use]
    pub fn or_other(self, path: &Path, said: impl Into<Error>) -> Error {
        if path.is_dir() {
            return Error::data(path, format!("this is a folder; allowed is {}", self.noun()));
        }
        match FileKind::of(path) {
            Some(other) if other != self => {
                let file = path.display();
                let message = format!(
                    "this is {}, and not {}: {}",
                    other.noun(),
                    self.noun(),
                    other.advice()
                );
                Error::data(path, message.replace("FILE", &file.to_string()))
            }
            _ => said.into(),
        }
    }

    /// In words.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            FileKind::Jobs => "a list of jobs",
            FileKind::Nodes => "a list of nodes",
            FileKind::Cluster => "a description of a cluster",
            FileKind::Site => "the configuration of a site (site.toml)",
            FileKind::Settings => "the settings of a training (settings.toml)",
            FileKind::Mapping => "a mapping of a table",
            FileKind::Grid => "the configuration of a sweep",
            FileKind::Manifest => "the manifest of a sweep (sweep.json)",
            FileKind::Policy => "a policy",
        }
    }

    /// What takes such a file.
    fn advice(self) -> &'static str {
        match self {
            FileKind::Jobs => {
                "pleach run site.toml --init FILE writes site.toml for it; --workload FILE plays it"
            }
            FileKind::Nodes => "give it to --nodes",
            FileKind::Cluster => "give it to --cluster, or give the list of jobs beside which it lies",
            FileKind::Site => "pleach run FILE",
            FileKind::Settings => "give it to --config of pleach train, or as --workload",
            FileKind::Mapping => "give it to --mapping of pleach workload import",
            FileKind::Grid => {
                "plan it first, pleach sweep plan --config FILE, and give the sweep.json that this writes"
            }
            FileKind::Manifest => "pleach sweep run --manifest FILE",
            FileKind::Policy => "give it to --policy",
        }
    }
}

fn of_json(text: &str) -> Option<FileKind> {
    let has = |key: &str| text.contains(&format!("\"{key}\""));
    if has("units") && has("base") && has("schema") {
        Some(FileKind::Manifest)
    } else if has("pleach-tree") || has("weights") && has("version") {
        Some(FileKind::Policy)
    } else if has("node_groups") {
        Some(FileKind::Cluster)
    } else {
        None
    }
}

fn of_toml(table: &toml::Table) -> Option<FileKind> {
    let has = |key: &str| table.contains_key(key);
    let is_table = |key: &str| table.get(key).is_some_and(toml::Value::is_table);
    if has("node_groups") || is_table("cluster") {
        Some(FileKind::Cluster)
    } else if is_table("grid") || is_table("draw") || is_table("halving") || is_table("base") {
        Some(FileKind::Grid)
    } else if is_table("columns") {
        Some(FileKind::Mapping)
    } else if table.get("jobs").is_some_and(toml::Value::is_str) {
        Some(FileKind::Site)
    } else if is_table("env") || is_table("train") {
        Some(FileKind::Settings)
    } else {
        None
    }
}
