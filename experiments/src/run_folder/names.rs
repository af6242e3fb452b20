//! Names and bounds of the files of a run's folder.

/// What the run is.
pub(super) const RUN_FILE: &str = "run.json";
/// The whole configuration.
pub const CONFIG_FILE: &str = "config.toml";
/// What training writes to be given back with `--config`.
pub const SETTINGS_FILE: &str = "settings.toml";
/// Largest size of the two small files that describe a run, bytes.
pub(super) const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;

/// Folder in which a training and its other processes exchange files; it is gone when the training has ended.
pub(crate) const EXCHANGE: &str = "units";
