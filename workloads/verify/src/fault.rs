//! What is wrong with a schedule.

use std::fmt;

/// A rule of every schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// No GPU belongs to more jobs than may share it.
    Gpus,
    /// Shares of a GPU are at most the GPU.
    Shares,
    /// GPU memory of jobs that share a GPU fits together.
    GpuMemory,
    /// Cores set aside on a node are at most the node's.
    Cores,
    /// Host memory set aside on a node is at most the node's.
    Memory,
    /// A job holds all its GPUs at once, each copy of it at most as many, an elastic one at most what its class can use.
    Gang,
    /// Every task of a job lies on one node, on each node lie at most as many as may, and all lie on at most as many nodes as may be.
    Tasks,
    /// A job holds the share of each GPU, the GPU memory, the cores and the host memory that it asked for, or more of the last two.
    Request,
    /// No job runs before it arrives.
    Arrival,
    /// A job runs on GPU types that its class can use, on one type where types may not be mixed.
    Type,
    /// A tenant holds at most its quota where borrowing is off.
    Quota,
    /// A node that is drained takes no new jobs, one that is down runs none.
    Availability,
    /// A job has one attempt at a time, on the same GPUs from its begin to its end, numbered in order.
    Attempt,
    /// The scheduler stops no job where it may not stop jobs.
    Stopping,
    /// A job that completed did its work, all others at most theirs.
    Work,
    /// Every job of the list leaves, unless the record ends before.
    Completion,
    /// Nothing runs faster than its class can on what it holds.
    Rate,
    /// An attempt makes no progress before its start is paid.
    Start,
    /// Jobs, attempts and nodes fail, and records end early, only where the settings say so.
    Ending,
    /// Work is lost only where the settings say so, and never more than was done.
    Loss,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 20] = [
        Rule::Gpus,
        Rule::Shares,
        Rule::GpuMemory,
        Rule::Cores,
        Rule::Memory,
        Rule::Gang,
        Rule::Tasks,
        Rule::Request,
        Rule::Arrival,
        Rule::Type,
        Rule::Quota,
        Rule::Availability,
        Rule::Attempt,
        Rule::Stopping,
        Rule::Work,
        Rule::Completion,
        Rule::Rate,
        Rule::Start,
        Rule::Ending,
        Rule::Loss,
    ];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Rule::Gpus => "gpus",
            Rule::Shares => "shares",
            Rule::GpuMemory => "gpu-memory",
            Rule::Cores => "cores",
            Rule::Memory => "memory",
            Rule::Gang => "gang",
            Rule::Tasks => "tasks",
            Rule::Request => "request",
            Rule::Arrival => "arrival",
            Rule::Type => "type",
            Rule::Quota => "quota",
            Rule::Availability => "availability",
            Rule::Attempt => "attempt",
            Rule::Stopping => "stopping",
            Rule::Work => "work",
            Rule::Completion => "completion",
            Rule::Rate => "rate",
            Rule::Start => "start",
            Rule::Ending => "ending",
            Rule::Loss => "loss",
        }
    }
}

/// A segment that takes part in a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    /// The job.
    pub job: String,
    /// Its attempt.
    pub attempt: u32,
    /// From when on, s.
    pub from_s: f64,
    /// Until when, s.
    pub to_s: f64,
}

impl fmt::Display for Party {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "job {} (attempt {}, {} s to {} s)",
            self.job, self.attempt, self.from_s, self.to_s
        )
    }
}

/// One break of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The rule.
    pub rule: Rule,
    /// When, s.
    pub at_s: f64,
    /// The node, where it is about one.
    pub node: Option<String>,
    /// The job's segment; of a job that never ran a segment of no length.
    pub job: Party,
    /// The other segment, where two clash.
    pub other: Option<Party>,
    /// What is wrong, with both numbers.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: at {} s", self.rule.word(), self.at_s)?;
        if let Some(node) = &self.node {
            write!(out, " on node {node}")?;
        }
        write!(out, ": {} {}", self.job, self.what)?;
        match &self.other {
            Some(other) => write!(out, ", beside {other}"),
            None => Ok(()),
        }
    }
}
