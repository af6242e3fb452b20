//! What `--cluster` takes: a file in TOML or JSON, or the short form `16x8:A100,4x4:V100`. Holes are filled in and reported, and
//! all mistakes are reported at once.

use std::path::Path;

use pleach_env::workload::cluster;
use pleach_scheduler::cluster_spec::ClusterSpec;

use crate::error::Error;
use crate::file_kind::FileKind;
use crate::run_folder::atomic_file::{finite, read_text};

/// Largest cluster description, bytes.
const CLUSTER_BYTES_MAX: u64 = 1 << 20;

/// A cluster by file or short form, and what was assumed.
///
/// # Errors
/// A text that is neither; everything that is wrong in a description.
pub fn cluster_of(given: &Path) -> Result<(ClusterSpec, Option<String>), Error> {
    let text = given.to_string_lossy();
    if !given.exists() {
        if cluster::is_short(&text) {
            return Ok(cluster::of_short(&text)?);
        }
        let allowed = "a file in TOML or JSON, or nodes x GPUs : type such as 16x8:A100,4x4:V100";
        let hint = "`pleach cluster init` writes a file.";
        let value = format!("{text} (there is no such file)");
        return Err(Error::config("cluster", value, allowed, hint));
    }
    read(given).map_err(|error| FileKind::Cluster.or_other(given, error))
}

fn read(given: &Path) -> Result<(ClusterSpec, Option<String>), Error> {
    let file = given.display().to_string();
    let text = read_text(given, CLUSTER_BYTES_MAX)?;
    if given.extension().is_some_and(|extension| extension == "json") {
        let table = cluster::json_table(&text).map_err(|message| Error::data(given, message))?;
        return Ok(cluster::read_table(&file, &table)?);
    }
    if let Ok(table) = toml::from_str(&text) {
        finite(&table).map_err(|message| Error::data(given, message))?;
    }
    Ok(cluster::read(&file, &text)?)
}
