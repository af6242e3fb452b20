//! The record of a schedule: which job ran where and when, at what rate, and why it ended. Written and read here and nowhere
//! else; the page docs/schedule-record.md says what each column means.
//!
//! A row is a *segment*: a time in which one attempt of one job held one set of resources at one rate. An attempt is a row of
//! segments without a gap on the same GPUs: the time that a start costs has rate 0, and the rate changes where neighbours come
//! and go.

mod chrome;
mod places;
mod read;
mod write;

use std::collections::BTreeMap;

pub use places::{Gpus, Slice};
pub use write::ENDINGS;

/// Columns in the order in which they are written.
pub const COLUMNS: [&str; 17] = [
    "policy",
    "workload",
    "seed",
    "job_id",
    "attempt",
    "nodes",
    "num_gpus",
    "gpu_milli",
    "gpu_memory_gib",
    "cpu_cores",
    "memory_gib",
    "copies",
    "from_s",
    "to_s",
    "rate",
    "lost_s",
    "ended",
];
/// Columns that a file must have; of the others the defaults are those of a whole-GPU gang of one run.
pub const REQUIRED: [&str; 6] = ["job_id", "nodes", "from_s", "to_s", "rate", "ended"];

/// A column that a file may have last: in its first row how the record was made ([`Record::settings`]), elsewhere nothing.
pub const SETTINGS: &str = "settings";
/// Longest settings that are written, bytes: quoted, they fit into a line.
pub const SETTINGS_BYTES_MAX: usize = 16_384;

/// Latest time of a record, s: what Unix time and the longest simulation are below.
pub const TIME_S_MAX: f64 = 1e12;

/// Schedules of one or more policies on one or more workloads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Run by run.
    pub runs: Vec<Run>,
    /// How it was made, as its writer says; empty: it does not say. Without a segment, or longer than [`SETTINGS_BYTES_MAX`], it
    /// is not written.
    pub settings: String,
}

/// The schedule of one policy on one workload with one seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the run.
    pub seed: u64,
    /// Names of the jobs; a segment names one by index.
    pub jobs: Vec<String>,
    /// Names of the nodes; a slice names one by index. Of a simulated cluster they are numbers from 0 over the groups of nodes.
    pub nodes: Vec<String>,
    /// Segments; those of one job in the order of time.
    pub segments: Vec<Segment>,
}

/// A time in which one attempt of one job held one set of resources at one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Index into [`Run::jobs`].
    pub job: u32,
    /// Which attempt of the job it belongs to, from 1.
    pub attempt: u32,
    /// What it held of which nodes, one slice for each.
    pub slices: Vec<Slice>,
    /// Share of each GPU in thousandths, 1 to 1000.
    pub gpu_milli: u16,
    /// GPU memory that was set aside with each share, GiB; 0: none was.
    pub gpu_memory_gib: f64,
    /// CPU cores that came with each GPU; 0: none were set aside.
    pub cpu_cores: f64,
    /// Host memory that came with each GPU, GiB; 0: none was set aside.
    pub memory_gib: f64,
    /// Copies of the job that split its work, one on each node; 0: it ran as one gang.
    pub copies: u32,
    /// From when on, s.
    pub from_s: f64,
    /// Until when, s, later than `from_s`.
    pub to_s: f64,
    /// Progress in seconds of the reference run per second, 0 or more.
    pub rate: f64,
    /// Work that its end added to what is left to do, in seconds of the reference run: what a failure undid, or what a restart
    /// costs where that is work. 0 or more.
    pub lost_s: f64,
    /// Why it ended.
    pub ended: Ended,
}

impl Segment {
    /// GPUs that it held, shares counted as GPUs.
    #[must_use]
    pub fn num_gpus(&self) -> u64 {
        self.slices
            .iter()
            .map(|slice| u64::from(slice.gpus.num()) * u64::from(slice.num_nodes))
            .sum()
    }
}

/// Why a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// The attempt went on, at another rate.
    Continued,
    /// The job had done all its work.
    Completed,
    /// The job left with an error, for good.
    Failed,
    /// The job was ended by its user or a time limit.
    Killed,
    /// The attempt failed by itself, and the job went back to the queue.
    AttemptFailed,
    /// A node of it failed or was taken away, and the job went back to the queue.
    NodeFailed,
    /// It was stopped by the scheduler and waited.
    Preempted,
    /// It was stopped to go on at once on another number of GPUs.
    Resized,
    /// It was stopped to go on at once on as many GPUs, others or the same.
    Moved,
    /// The record ends here.
    Horizon,
}

impl Ended {
    /// All reasons.
    pub const ALL: [Ended; 10] = [
        Ended::Continued,
        Ended::Completed,
        Ended::Failed,
        Ended::Killed,
        Ended::AttemptFailed,
        Ended::NodeFailed,
        Ended::Preempted,
        Ended::Resized,
        Ended::Moved,
        Ended::Horizon,
    ];

    /// The word in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Ended::Continued => "continued",
            Ended::Completed => "completed",
            Ended::Failed => "failed",
            Ended::Killed => "killed",
            Ended::AttemptFailed => "attempt-failed",
            Ended::NodeFailed => "node-failed",
            Ended::Preempted => "preempted",
            Ended::Resized => "resized",
            Ended::Moved => "moved",
            Ended::Horizon => "horizon",
        }
    }

    /// The reason that a word means.
    #[must_use]
    pub fn of(word: &str) -> Option<Ended> {
        Ended::ALL.into_iter().find(|ended| ended.word() == word)
    }

    /// Whether the job had left with it.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Ended::Completed | Ended::Failed | Ended::Killed)
    }
}

/// Names by index, each once.
#[derive(Debug, Default)]
pub struct Names {
    by_name: BTreeMap<String, u32>,
}

impl Names {
    /// The index of a name in `names`, which it joins where it is new.
    pub fn index(&mut self, name: &str, names: &mut Vec<String>) -> u32 {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = names.len() as u32;
        names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), index);
        index
    }
}

#[cfg(test)]
mod tests;
