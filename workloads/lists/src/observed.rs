//! How a job went at the site that the list is of: what a simulation of the same list can be held against.

use pleach_scheduler::Time;
use serde::{Deserialize, Serialize};

/// What a site's accounting says of a job, on the clock of the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// When it first began.
    pub start: Time,
    /// When it ended for good; none where it still ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Time>,
    /// Its nodes as Slurm writes lists, `g[1-3,7]`; empty where they are not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nodes: String,
    /// Its partition or queue; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// Its quality of service; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub qos: String,
    /// Features that its nodes must have, as Slurm's `--constraint` writes them; empty where it asks for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub constraint: String,
    /// Licences that it holds, as Slurm's `--licenses` writes them; empty where it asks for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub licences: String,
    /// How long it had been submitted before it was eligible, s: it waited for another job, for a time or for its turn. The
    /// list's submission is when it became eligible.
    #[serde(default, skip_serializing_if = "is_none")]
    pub held_s: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
fn is_none(value: &f64) -> bool {
    *value == 0.0
}

impl Observed {
    /// What it asks of its site, as [`WISH_COLUMNS`](crate::file::WISH_COLUMNS) has it.
    pub(crate) fn wishes(&self) -> [&str; 2] {
        [&self.constraint, &self.licences]
    }

    /// The same on a clock that starts at `origin`.
    pub(crate) fn since(mut self, origin: Time) -> Observed {
        self.start = self.start - origin;
        self.end = self.end.map(|end| end - origin);
        self
    }
}
