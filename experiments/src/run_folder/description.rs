//! The two small files that say what a run is and what it made: `run.json`, `artefacts.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::names::{DESCRIPTION_BYTES_MAX, RUN_FILE};
use crate::error::Error;
use crate::run_folder::atomic_file;

/// What a run is: `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDescription {
    /// Version of this file's layout.
    pub schema: u32,
    /// The command: `evaluate`, `train`, ...
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Root seed.
    pub seed: u64,
    /// Hex SHA-256 of the configuration's canonical JSON.
    pub config_hash: String,
}

impl RunDescription {
    /// Of the run in a folder; none where there is no run.
    ///
    /// # Errors
    /// A `run.json` that cannot be read.
    pub fn read(folder: &Path) -> Result<Option<RunDescription>, Error> {
        let file = folder.join(RUN_FILE);
        if !file.is_file() {
            return Ok(None);
        }
        atomic_file::read_json(&file, DESCRIPTION_BYTES_MAX).map(Some)
    }
}
