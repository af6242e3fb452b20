//! What Slurm's records say, as plain values: lists of nodes, devices of a node (`Gres`), what a job has (`TRES`), spans of time
//! and limits, ids of jobs, states, `slurm.conf`, dumps of associations. Programs that ask a running Slurm and programs that read
//! an export read the same texts here.
//!
//! # What is deliberately not here
//! Commands, and what the values mean for a schedule.

mod conf;
mod devices;
mod dump;
mod job_id;
mod lines;
mod node_list;
mod span;
mod state;
mod weights;

pub use conf::{Conf, ConfError, Row};
pub use devices::{Device, Gpus, Unread, devices, gpus_of_tres, tres_of};
pub use dump::{Association, associations, printed};
pub use job_id::{JobId, array_of, is_name, job_id, whole};
pub use lines::{sums, values};
pub use node_list::{ListError, expand, fold, num_nodes};
pub use span::{limit_s, span_s};
pub use state::{Fate, is_cut};
pub use weights::missing_weights;

/// Whether a field of a running Slurm says that there is nothing.
#[must_use]
pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "(null)" | "N/A")
}

/// Whether a field of an export says nothing, in the words of accounting, of tables and of spreadsheets.
#[must_use]
pub fn is_nothing(text: &str) -> bool {
    is_null(text)
        || matches!(
            text,
            "Unknown"
                | "None"
                | "None assigned"
                | "null"
                | "NULL"
                | "NaN"
                | "nan"
                | "NA"
                | "-"
                | "n/a"
                | "none"
        )
}
