//! What Slurm's commands print, as plain values: lists of nodes, devices of a node (`Gres`), what a job has (`TRES`), spans of
//! time, ids of jobs. Who asks a running Slurm and who reads an export read the same texts here.
//!
//! # What is deliberately not here
//! Commands, and what the values mean for a schedule.

mod devices;
mod job_id;
mod node_list;
mod span;

pub use devices::{Device, devices, gpus_of_tres, tres_of};
pub use job_id::{JobId, job_id};
pub use node_list::{ListError, expand, fold, num_nodes};
pub use span::span_s;

/// Whether a field says that there is nothing.
#[must_use]
pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "(null)" | "N/A")
}
