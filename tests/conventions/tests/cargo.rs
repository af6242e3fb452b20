//! What Cargo says of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The output of `cargo ARGUMENTS --locked` in the workspace.
///
/// # Panics
/// Where it fails.
pub fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--locked")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// All packages with all features.
pub fn metadata() -> Value {
    serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--all-features"])).unwrap()
}

/// The folders of all crates but examples: those of the first page, and those within its groups. `tests/fuzz` has no `src`: it is a
/// workspace of its own, with nothing of the product.
pub fn crate_folders() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folders = |of: &Path| {
        let entries = std::fs::read_dir(of).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
    };
    let mut found: Vec<PathBuf> = folders(root)
        .flat_map(|group| folders(&group).chain([group.clone()]).collect::<Vec<_>>())
        .filter(|path| path.join("Cargo.toml").is_file() && path.join("src").is_dir())
        .collect();
    found.sort();
    found
}
