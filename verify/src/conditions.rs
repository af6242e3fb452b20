//! Under which rules a schedule was made.

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
