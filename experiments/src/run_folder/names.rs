//! Names and bounds of the files of a run's folder.

use std::path::{Component, Path};

/// What the run is.
pub(super) const RUN_FILE: &str = "run.json";
/// The whole configuration.
pub const CONFIG_FILE: &str = "config.toml";
/// What training writes to be given back with `--config`.
pub const SETTINGS_FILE: &str = "settings.toml";
/// Names, sizes and hashes of all files; written last.
pub(crate) const ARTEFACTS_FILE: &str = "artefacts.json";
/// Largest size of the two small files that describe a run, bytes.
pub(super) const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;

/// Whether a name leads to a place inside the folder that it is joined to.
pub(super) fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    parts.all(|part| matches!(part, Component::Normal(_)))
}
