//! The project's own workload file: one table of jobs, CSV (plain or gzipped) or Parquet, and beside it a TOML that
//! describes the cluster.
//!
//! `NAME.csv`, `NAME.csv.gz` or `NAME.parquet` holds a row per job under the header [`COLUMNS`], and under
//! [`RESOURCE_COLUMNS`] too where some job asks for more or less than whole GPUs, and under [`TASK_COLUMNS`] where some
//! gang is cut into tasks; `NAME.cluster.toml` holds the cluster and the model classes. What is written reads back
//! equal to the last bit. A list made by hand needs only [`REQUIRED`] and, where it has no sidecar, a cluster from the
//! caller. Column table: docs/workload-file.md.
//!
//! Unlike the importers, this reader mends nothing but the order of the rows: the file is ours, so a value that does
//! not fit is an error with its line and column.

mod parquet_write;
mod read;
mod trainings;
mod write;

use std::path::{Path, PathBuf};

use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use serde::{Deserialize, Serialize};

pub(crate) use read::{cluster_beside, read_draft};

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
/// Columns of [`Resources`](pleach_scheduler::cluster_spec::Resources), per GPU of the gang; a file has all of them or none
/// when it is written, and any of them when it is read.
pub const RESOURCE_COLUMNS: [&str; 4] = ["gpu_milli", "gpu_memory_gib", "cpu_cores", "memory_gib"];
/// Columns of [`Tasks`](pleach_scheduler::Tasks), with the same rule.
pub const TASK_COLUMNS: [&str; 3] = ["gpus_per_task", "tasks_per_node_max", "nodes_max"];
/// Columns of [`Observed`](crate::Observed); written where some job has it, read where the first of them is there.
pub const OBSERVED_COLUMNS: [&str; 5] = [
    "observed_start_s",
    "observed_end_s",
    "observed_nodes",
    "partition",
    "qos",
];
/// What of [`Observed`](crate::Observed) a job asks of its site; each written where some job asks for it.
pub const WISH_COLUMNS: [&str; 2] = ["constraint", "licences"];
/// [`Observed::held_s`](crate::Observed::held_s); written where some job has one.
pub const HELD_COLUMN: &str = "observed_held_s";
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
    /// Trainings of large models, each of which becomes a class behind those; written as classes.
    #[serde(default, skip_serializing)]
    trainings: Vec<toml::Spanned<trainings::TrainingEntry>>,
    cluster: ClusterSpec,
    /// What the file leaves out and was filled in.
    #[serde(skip)]
    assumed: Option<String>,
}

/// Path of the sidecar: the path of the jobs with `.cluster.toml` for `.csv`, `.csv.gz` or `.parquet`.
#[must_use]
pub fn sidecar_path(jobs: &Path) -> PathBuf {
    jobs.with_file_name(format!("{}.cluster.toml", super::import::draft::name_of(jobs)))
}

/// The sidecar that is there: `jobs.txt` may have `jobs.cluster.toml` too.
pub(crate) fn sidecar_beside(jobs: &Path) -> Option<PathBuf> {
    let found = [sidecar_path(jobs), jobs.with_extension("cluster.toml")];
    found.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod parquet_tests;
#[cfg(test)]
mod tests;
