//! A bundle: a folder with a tree and what belongs to it, whole or absent.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use pleach_scheduler::tree::{
    BUNDLE_FORMAT, BUNDLE_VERSION, BUNDLED_TREE, Bundle, BundledFile, MANIFEST_FILE, Manifest, Tree,
};

use crate::error::Error;
use crate::run_folder::atomic_file::{write, write_json};
use crate::tree_export::Form;

/// Removes a folder that did not become a bundle.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a success the folder has been renamed; else this name is not read.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files of a bundle but for the manifest: the tree for programs and for readers, its certificates in words, exports.
fn files_of(tree: &Tree, forms: &[Form]) -> Vec<(String, Vec<u8>)> {
    let certificates: Vec<String> = tree
        .certify()
        .iter()
        .map(|own| own.in_words(tree.schema()) + "\n")
        .collect();
    let mut files = vec![
        (BUNDLED_TREE.to_string(), tree.to_json().into_bytes()),
        ("tree.txt".into(), tree.to_text().into_bytes()),
        ("certificates.txt".into(), certificates.concat().into_bytes()),
    ];
    let exports = forms.iter().map(|form| form.file(tree));
    files.extend(exports.map(|(name, content)| (name.to_string(), content)));
    files
}

/// Refuses what cannot become a bundle, before anything is written: the name of its folder.
///
/// # Errors
/// A place that is taken or has no name, a form that is listed twice.
pub fn check<'a>(forms: &[Form], out: &'a Path) -> Result<&'a OsStr, Error> {
    let refuse = |allowed: &str, hint: &str| Error::config("bundle", out.display(), allowed, hint);
    if fs::symlink_metadata(out).is_ok() {
        return Err(refuse(
            "a folder that is not there yet",
            "Give another name; a bundle is never overwritten.",
        ));
    }
    let Some(name) = out.file_name() else {
        return Err(refuse("the name of a folder", "Give one, such as tree-1."));
    };
    if let Some(twice) = forms
        .iter()
        .enumerate()
        .find(|(place, form)| forms[..*place].contains(form))
    {
        return Err(Error::config(
            "to",
            twice.1.name(),
            "each form once",
            "Leave it out once.",
        ));
    }
    Ok(name)
}

/// Writes a bundle to `out`, which must not be there yet; reads it back before it gets its name.
///
/// # Errors
/// As [`check`]; a folder that cannot be written.
pub fn bundle(tree: &Tree, forms: &[Form], commit: Option<String>, out: &Path) -> Result<Manifest, Error> {
    let name = check(forms, out)?;
    let files = files_of(tree, forms);
    let visits = tree.visits().map(|visits| visits.recorded_on.clone());
    let manifest = Manifest {
        format: BUNDLE_FORMAT.into(),
        version: BUNDLE_VERSION,
        name: tree.meta().name.clone(),
        tree_hash: tree.hash(),
        made_by: format!("pleach {}", env!("CARGO_PKG_VERSION")),
        commit,
        trained_by: tree.meta().trained_by.clone(),
        recorded_on: visits.unwrap_or_default(),
        files: files
            .iter()
            .map(|(name, content)| BundledFile::of(name, content))
            .collect(),
    };
    let hidden = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
    let unfinished = Unfinished(out.with_file_name(hidden));
    for (name, content) in &files {
        write(&unfinished.0.join(name), content)?;
    }
    write_json(&unfinished.0.join(MANIFEST_FILE), &manifest)?;
    Bundle::open(&unfinished.0).map_err(|error| Error::Failed(error.to_string()))?;
    fs::rename(&unfinished.0, out).map_err(|source| Error::io("write", out, source))?;
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::tree::Export;

    fn tree() -> Tree {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/trees/GavelShare-v1-tree.json"
        );
        Tree::load(path.as_ref()).unwrap().with_golden()
    }

    #[test]
    fn a_bundle_is_whole_or_absent_and_the_same_bytes_each_time() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("deep/one");
        let forms = [Form::Text(Export::C), Form::Onnx];
        let manifest = bundle(&tree(), &forms, Some("v1".into()), &out).unwrap();
        let names: Vec<&str> = manifest.files.iter().map(|file| file.file.as_str()).collect();
        let expected = ["tree.json", "tree.txt", "certificates.txt", "tree.h", "tree.onnx"];
        assert_eq!(names, expected);
        let found = Bundle::open(&out).unwrap();
        assert_eq!((&found.tree, &found.manifest), (&tree(), &manifest));
        assert_eq!(manifest.trained_by, tree().meta().trained_by);
        let other = root.path().join("deep/other");
        bundle(&tree(), &forms, Some("v1".into()), &other).unwrap();
        let read = |folder: &Path| fs::read(folder.join(MANIFEST_FILE)).unwrap();
        assert_eq!(read(&out), read(&other));
        // Never over another, and nothing is left where it is refused.
        let said = bundle(&tree(), &forms, None, &out).unwrap_err().to_string();
        assert!(
            said.contains("allowed is a folder that is not there yet"),
            "{said}"
        );
        let twice = [Form::Onnx, Form::Onnx];
        let said = bundle(&tree(), &twice, None, &root.path().join("deep/twice"))
            .unwrap_err()
            .to_string();
        assert!(said.contains("to = onnx: allowed is each form once"), "{said}");
        let mut left: Vec<_> = fs::read_dir(root.path().join("deep"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["one", "other"]);
    }
}
