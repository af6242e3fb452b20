//! Workloads, what they would take of their ClusterQueue and what becomes of them.

use super::quota::Amounts;

/// A workload as its ClusterQueue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its number in the tables of the caller.
    pub job: u32,
    /// Its ClusterQueue.
    pub queue: usize,
    /// The higher the earlier.
    pub priority: i64,
    /// When it was created, whole seconds: Kubernetes keeps no more.
    pub created_s: i64,
    /// What decides within a second.
    pub uid: u64,
    /// Thousandths of GPUs and cores, and MiB.
    pub asks: [i64; 3],
    /// GPU types on which it can run, as a bit mask.
    pub kinds: u64,
}

/// What became of a workload in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has its quota, on these GPU types.
    Admitted(u64),
    /// It waits until these are gone; those that were evicted before are not named.
    Preempts(Vec<u32>),
    /// Another one of the cycle was before it; it is tried again.
    Again,
    /// It waits.
    Refused,
}

/// An admitted workload.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) work: Workload,
    pub(super) usage: Amounts,
    pub(super) since_s: i64,
    pub(super) evicted: bool,
}

/// How an amount is to be had, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// Never, as quotas are.
    NoFit,
    /// By preemption, but there is nothing to preempt.
    NoVictims,
    /// By preemption within its ClusterQueue, too.
    Preempt,
    /// By preemption in others.
    Reclaim,
    /// It fits.
    Fit,
}

/// What a workload would take.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) mode: Mode,
    /// Whether it has to borrow.
    pub(super) borrows: bool,
    pub(super) usage: Amounts,
    /// Places at which something must be preempted.
    pub(super) contested: Vec<usize>,
    /// GPU types of its flavours.
    pub(super) kinds: u64,
}

impl Assignment {
    pub(super) fn of(mode: Mode, kinds: u64) -> Assignment {
        Assignment {
            mode,
            borrows: false,
            usage: Amounts::new(),
            contested: Vec::new(),
            kinds,
        }
    }
}

/// A group of resources of a ClusterQueue and its flavours in order.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) resources: Vec<usize>,
    pub(super) flavours: Vec<usize>,
}
