//! Under which rules a schedule was made.

use crate::law::Starts;

/// What the cluster could do, beside what its description says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Whether two whole-GPU jobs may share GPUs.
    pub sharing: bool,
    /// Whether a gang may hold GPUs of several types.
    pub mixed_types: bool,
    /// Whether the scheduler may stop running jobs.
    pub stopping: bool,
    /// When nodes took no jobs.
    pub closed: Vec<Closed>,
    /// Whether the record was taken from a real cluster: its rates, costs, ends and losses are what they were.
    pub is_observed: bool,
    /// What fails, and what is lost by it.
    pub failures: Failures,
    /// What starts and restarts cost.
    pub starts: Starts,
    /// Standard deviation of the logarithm of what a start costs; 0: it costs what it costs.
    pub starts_deviation: f64,
    /// Whether a restart is work added at the stop, and no time at the begin of the next attempt.
    pub restarts_are_work: bool,
}

/// What fails, and what is lost by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Whether jobs fail and are killed.
    pub jobs: bool,
    /// Whether attempts meet incidents of the site.
    pub incidents: bool,
    /// Whether nodes fail or are taken.
    pub nodes: bool,
    /// Whether a failure undoes work.
    pub lose: bool,
    /// Whether a stop by the scheduler undoes work.
    pub stops_lose: bool,
}

/// A time in which a node took no new jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Number of the node in the cluster.
    pub node: u32,
    /// From when on, s.
    pub from_s: f64,
    /// Until when, s; infinite where it does not come back.
    pub to_s: f64,
    /// Whether it ran nothing at all; otherwise it kept what it had.
    pub is_down: bool,
}
