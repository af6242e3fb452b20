//! A bundle: a folder with a tree and what belongs to it, and a manifest with the hash of each file.
//!
//! The reader trusts nothing: the folder has exactly the files that the manifest lists, each a plain file of the listed size and
//! hash, and no name leads out of it. The tree is read from the very bytes that were hashed. `docs/policy-file.md` describes it.
//!
//! # What is deliberately not here
//! A signature. A manifest shows damage and mixed versions, not malice: anyone who may write the folder may write the manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::error::TreeError;
use super::{MAX_BYTES, Tree};
use crate::problem::files;

/// Name of the manifest.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Name of the policy file in a bundle.
pub const BUNDLED_TREE: &str = "tree.json";
/// What the key `format` of a manifest says.
pub const BUNDLE_FORMAT: &str = "pleach-bundle";
/// Version of manifests.
pub const BUNDLE_VERSION: u64 = 1;
/// Most files of a bundle.
const FILES_MAX: usize = 64;
/// Largest file of a bundle, bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What a bundle holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`BUNDLE_FORMAT`].
    pub format: String,
    /// [`BUNDLE_VERSION`].
    pub version: u64,
    /// Name of the tree.
    pub name: String,
    /// Hash of what decides ([`Tree::hash`]).
    pub tree_hash: String,
    /// Program and version that wrote the bundle.
    pub made_by: String,
    /// What the sources are known by; free, absent = not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What made the tree, as its file says.
    pub trained_by: BTreeMap<String, serde_json::Value>,
    /// Lists on which its visits were recorded, as its file says; empty = none.
    pub recorded_on: BTreeMap<String, serde_json::Value>,
    /// All files but the manifest, by name.
    pub files: Vec<BundledFile>,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledFile {
    /// Its name in the folder.
    pub file: String,
    /// Its size.
    pub size_bytes: u64,
    /// Hex SHA-256.
    pub sha256: String,
}

impl BundledFile {
    /// The entry of a file with this content.
    #[must_use]
    pub fn of(file: &str, content: &[u8]) -> BundledFile {
        let digest: [u8; 32] = Sha256::digest(content).into();
        BundledFile {
            file: file.to_owned(),
            size_bytes: content.len() as u64,
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// A bundle that cannot be used, with the reason.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A file that cannot be read.
    #[error("bundle: {file}: {source}")]
    Io {
        /// Its name.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A manifest that is none.
    #[error("bundle: {MANIFEST_FILE}: {0}; write the bundle anew with pleach distill seal FILE --bundle DIR")]
    Manifest(String),
    /// A file that is not as the manifest says.
    #[error(
        "bundle: {file}: {reason}; copy the folder as a whole, or write it anew with pleach distill seal FILE --bundle DIR"
    )]
    File {
        /// Its name.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A tree that is refused.
    #[error("bundle: {BUNDLED_TREE}: {0}")]
    Tree(#[from] TreeError),
}

/// A bundle whose files are those of its manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// The tree.
    pub tree: Tree,
    /// What else is said.
    pub manifest: Manifest,
}

impl Bundle {
    /// Reads a bundle and checks every file of it.
    ///
    /// # Errors
    /// The first thing that is wrong, see [`BundleError`].
    pub fn open(folder: &Path) -> Result<Bundle, BundleError> {
        let bytes = read(folder, MANIFEST_FILE, MAX_BYTES)?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| BundleError::Manifest(error.to_string()))?;
        check(&manifest)?;
        refuse_others(folder, &manifest)?;
        let mut tree = None;
        for listed in &manifest.files {
            let content = read(folder, &listed.file, FILE_BYTES_MAX)?;
            let found = BundledFile::of(&listed.file, &content);
            if found != *listed {
                let reason = format!(
                    "it has {} bytes of SHA-256 {}, and the manifest says {} of {}",
                    found.size_bytes,
                    found.sha256,
                    listed.size_bytes,
                    clip(&listed.sha256)
                );
                return Err(refused(&listed.file, reason));
            }
            if listed.file == BUNDLED_TREE {
                let text = String::from_utf8(content).map_err(|error| TreeError::Json(error.to_string()))?;
                tree = Some(Tree::from_json(&text)?);
            }
        }
        let Some(tree) = tree else {
            return Err(BundleError::Manifest(format!(
                "files: {BUNDLED_TREE} is not listed"
            )));
        };
        let visits = tree.visits().map(|visits| visits.recorded_on.clone());
        let is_same = [
            ("tree_hash", manifest.tree_hash == tree.hash()),
            ("name", manifest.name == tree.meta().name),
            ("trained_by", manifest.trained_by == tree.meta().trained_by),
            ("recorded_on", manifest.recorded_on == visits.unwrap_or_default()),
        ];
        match is_same.into_iter().find(|(_, is_same)| !is_same) {
            Some((key, _)) => Err(BundleError::Manifest(format!(
                "{key} is not that of {BUNDLED_TREE}"
            ))),
            None => Ok(Bundle { tree, manifest }),
        }
    }
}

/// Checks what a manifest alone can show.
fn check(manifest: &Manifest) -> Result<(), BundleError> {
    let fail = |reason: String| Err(BundleError::Manifest(reason));
    if manifest.format != BUNDLE_FORMAT {
        return fail(format!(
            "format = {:?}: allowed is {BUNDLE_FORMAT:?}",
            clip(&manifest.format)
        ));
    }
    if manifest.version != BUNDLE_VERSION {
        return fail(format!(
            "version = {}: this program reads {BUNDLE_VERSION}",
            manifest.version
        ));
    }
    if manifest.files.len() > FILES_MAX {
        return fail(format!(
            "files: there are {}, and at most {FILES_MAX} are read",
            manifest.files.len()
        ));
    }
    let mut names = BTreeSet::new();
    for listed in &manifest.files {
        // A plain name on every system: no folder, no drive, nothing hidden.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let name = &listed.file;
        if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.bytes().all(is_plain) {
            return fail(format!(
                "files: {:?}: allowed are letters, digits, `.`, `_` and `-`, not a dot at first",
                clip(name)
            ));
        }
        if name == MANIFEST_FILE || !names.insert(name) {
            return fail(format!("files: {name} stands there twice, or is the manifest"));
        }
        if listed.size_bytes > FILE_BYTES_MAX {
            return fail(format!(
                "files: {name}: size_bytes = {}: at most {FILE_BYTES_MAX}",
                listed.size_bytes
            ));
        }
    }
    Ok(())
}

/// Refuses files that the manifest does not list.
fn refuse_others(folder: &Path, manifest: &Manifest) -> Result<(), BundleError> {
    let failed = |source| BundleError::Io {
        file: ".".into(),
        source,
    };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let is_listed = manifest.files.iter().any(|listed| name == *listed.file);
        if !is_listed && name != MANIFEST_FILE {
            let name = clip(&name.to_string_lossy());
            return Err(refused(&name, "the manifest does not list it".into()));
        }
    }
    Ok(())
}

/// A plain file of the folder, at most so large.
fn read(folder: &Path, name: &str, bytes_max: u64) -> Result<Vec<u8>, BundleError> {
    let path = folder.join(name);
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => refused(name, "it is missing".into()),
        _ => BundleError::Io {
            file: name.to_owned(),
            source,
        },
    };
    // What a link leads to is not part of the folder.
    let kind = fs::symlink_metadata(&path).map_err(failed)?.file_type();
    if !kind.is_file() {
        return Err(refused(
            name,
            "it is a link, a folder or a device, and no plain file".into(),
        ));
    }
    let read = File::open(&path).and_then(|file| files::at_most(file, bytes_max));
    let bytes = read.map_err(failed)?;
    bytes.ok_or_else(|| refused(name, format!("it is larger than {bytes_max} bytes")))
}

fn refused(file: &str, reason: String) -> BundleError {
    BundleError::File {
        file: file.to_owned(),
        reason,
    }
}

fn clip(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests;
