//! The clock of rounds and the leases of a round: the conventions in which round-based simulators differ.

use pleach_scheduler::{JobId, Time};

/// Where a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// At whole multiples of the length.
    Grid,
    /// When the last lease has done its work, the whole steps that fit into the length; with nothing running, at the next
    /// arrival.
    LastStep,
}

/// When it is seen that a job has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// At that moment: the job leaves, and its GPUs idle until the round ends.
    AtOnce,
    /// When its lease ends: the job holds its GPUs until then.
    AtLeaseEnd,
}

/// The conventions of a round-based simulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundClock {
    /// Length of a round, above zero.
    pub length: Time,
    /// Where a round ends.
    pub end: RoundEnd,
    /// When finished work is seen.
    pub seen: Seen,
    /// A step, s of the reference run: a lease does only whole steps, and what is begun at its end is lost. None: progress
    /// is continuous.
    pub step_s: Option<f64>,
}

/// What becomes of the work of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It counts.
    #[default]
    Kept,
    /// It is lost: the attempt failed.
    Lost,
    /// It is lost, and the job leaves at the end of it: the last attempt failed.
    Left,
}

/// The terms of one job's lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeaseTerms {
    /// Multiplies the rate at which the job progresses, > 0: for example what its CPU cores make of it.
    pub rate_factor: f64,
    /// What becomes of the work.
    pub outcome: LeaseOutcome,
    /// The lease lasts at least so long, s, although the job may have done its work: two jobs that share GPUs may leave
    /// together.
    pub span_min_s: f64,
}

impl Default for LeaseTerms {
    fn default() -> LeaseTerms {
        LeaseTerms {
            rate_factor: 1.0,
            outcome: LeaseOutcome::Kept,
            span_min_s: 0.0,
        }
    }
}

/// Work that a job will have done when the round ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub job: JobId,
    /// The run that it belongs to: a job that was stopped within the round does not get its work.
    pub run: u32,
    pub work_s: f64,
}

/// The clock and the leases of the present round.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub clock: RoundClock,
    /// When the present round ends; none while nothing runs and no job waits for the grid.
    pub end: Option<Time>,
    pub leases: Vec<Lease>,
}
