//! What Cargo says of the workspace.

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
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
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
