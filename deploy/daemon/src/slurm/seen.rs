//! One look at Slurm.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

use super::left_over::Named;
use super::queue::Waiting;
use crate::snapshot::Snapshot;
use crate::system::Look;

/// What Slurm showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Jobs and nodes of the partition.
    pub snapshot: Snapshot,
    /// What a daemon of before has left behind.
    pub left_over: Vec<Named>,
    /// Every job that waits for driven nodes, with its factor.
    pub waiting: Waiting,
    /// The nodes that users shun, as lists, of the jobs whose users shun any, by their names.
    pub shunned: BTreeMap<String, String>,
    /// Jobs for which no nodes are to be named: their users name some, or they are not said as they were asked for.
    pub named: BTreeSet<ExternalId>,
    /// Jobs whose comments are an operator's.
    pub commented: BTreeSet<ExternalId>,
    /// What an operator should know of the site; empty: nothing.
    pub standing: String,
    /// Signs of another daemon; none: there are none.
    pub rival: Option<String>,
    /// What Slurm did not tell.
    pub notes: Vec<String>,
}

impl Look for Seen {
    fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.snapshot
    }

    fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    fn says(&self, job: ExternalId) -> Option<String> {
        let queue = &self.waiting.queue;
        let place = queue.iter().find(|place| place.job == Some(job))?;
        let higher = queue.iter().filter(|other| other.factor > place.factor).count();
        Some(format!(
            "Slurm: {}; site factor {}, which {higher} of {} that wait exceed.",
            place.reason,
            place.factor,
            queue.len()
        ))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn standing(&self) -> &str {
        &self.standing
    }

    fn rival(&self) -> Option<&str> {
        self.rival.as_deref()
    }

    fn name(&self, job: ExternalId) -> String {
        format!("job {job}")
    }
}
