//! The project's own workload file: one CSV of jobs, plain or gzipped, and beside it a TOML that describes the cluster.
//!
//! `NAME.csv` or `NAME.csv.gz` holds a row per job under the header [`COLUMNS`]; `NAME.cluster.toml` holds the cluster
//! and the model classes. What is written reads back equal to the last bit. A list made by hand needs only
//! [`REQUIRED`] and, where it has no sidecar, a cluster from the caller. Column table: docs/workload-file.md.
//!
//! Unlike the importers, this reader mends nothing but the order of the rows: the file is ours, so a value that does
//! not fit is an error with its line and column.

mod read;
mod write;

use std::path::{Path, PathBuf};

use pleach_scheduler::spec::{ClusterSpec, ModelClass};
use serde::{Deserialize, Serialize};

pub(crate) use read::read_draft;

/// Columns in the order in which they are written.
pub const COLUMNS: [&str; 9] = [
    "job_id",
    "submit_s",
    "num_gpus",
    "run_time_s",
    "estimate_s",
    "tenant",
    "class",
    "user",
    "outcome",
];
/// Columns that a file must have.
pub const REQUIRED: [&str; 3] = ["submit_s", "num_gpus", "run_time_s"];

/// The content of `NAME.cluster.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    /// Name of the workload; the file's name where absent.
    name: Option<String>,
    /// Model classes; one with speed 1 everywhere where absent.
    #[serde(default)]
    classes: Vec<ModelClass>,
    cluster: ClusterSpec,
}

/// Path of the sidecar: the path of the jobs with `.cluster.toml` for `.csv` or `.csv.gz`.
#[must_use]
pub fn sidecar_path(jobs: &Path) -> PathBuf {
    jobs.with_file_name(format!("{}.cluster.toml", super::import::name_of(jobs)))
}

#[cfg(test)]
mod tests;
