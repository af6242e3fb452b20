//! The jobs that read from the site's store and those that write to it.

use pleach_scheduler::Time;

/// Millionths, in which parts of time add up and cancel exactly.
pub(super) const WHOLE: f64 = 1e6;

/// The uses of the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    /// When each job that loads is done.
    pub(super) loads_until: Vec<Time>,
    /// How many begin to load in the pass that is carried out.
    pub(super) num_new_loads: usize,
    /// When each job that saves because it was stopped is done.
    pub(super) saves_until: Vec<Time>,
    /// Jobs that write, in expectation, beside each that is stopped in the pass that is carried out.
    pub(super) beside_stops: f64,
    /// Running jobs that write their checkpoints, in expectation, in millionths.
    pub(super) writing: u64,
}
