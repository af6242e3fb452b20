//! What a batch system has still to do, and what of it the scheduler does not know yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pleach_scheduler::{JobId, NodeId, Time};

/// A batch system between two events.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) tick: Option<Time>,
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) requeue: Time,
    pub(super) failure: Time,
    /// Whether anything happened since the scheduler last decided.
    pub(super) is_news: bool,
    /// Failures that are to be seen. (time, node)
    pub(super) failures: BinaryHeap<Reverse<(Time, NodeId)>>,
    /// When the failure of each node will be seen; none: it has not failed, or that was seen. `[num_nodes]`
    pub(super) unseen: Vec<Option<Time>>,
    /// From when on a job can begin on each node. `[num_nodes]`
    pub(super) nodes_from: Vec<Time>,
    /// Jobs that were stopped when they had already left.
    pub(super) gone: Vec<JobId>,
}
