//! What training has had, and which rows beside it are leases.

use pleach_scheduler::JobId;

/// Leases so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases {
    /// Their rows, lowest first.
    pub(super) rows: Vec<JobId>,
    /// GPUs that they hold.
    pub(super) num_gpus: u32,
    /// GPU·s that they have held.
    pub(super) held_gpu_s: f64,
}

/// What training has had and done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Training {
    /// GPU·s held by jobs.
    pub held_gpu_s: f64,
    /// Work that is done and kept, GPUs of the gang x seconds of the reference run.
    pub done_gpu_s: f64,
    /// Work that was done and lost again, in the same unit.
    pub lost_gpu_s: f64,
}
