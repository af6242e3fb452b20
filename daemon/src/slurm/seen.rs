//! One look at Slurm.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

use super::queue::Place;
use crate::snapshot::Snapshot;
use crate::system::Look;

/// What Slurm showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Jobs and nodes of the partition.
    pub snapshot: Snapshot,
    /// What has to be given back, with the nodes that its user named, as a list: parts of heterogeneous jobs that are held for the
    /// daemon; where Slurm starts the jobs itself, what a daemon before has left behind.
    pub parts: Vec<(String, String)>,
    /// Where Slurm is told an order: every job of the partition that waits, by arrival.
    pub queue: Vec<Place>,
    /// Whose nodes by name are whose, where jobs are held.
    pub named: Named,
    /// What Slurm did not tell.
    pub notes: Vec<String>,
}

/// Nodes by name: those of users, and those of the daemon that stand in their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Nodes that users name, as lists: what they get back when a start is taken back.
    pub wishes: BTreeMap<ExternalId, String>,
    /// Jobs that were stopped while they ran, and have the nodes of that run.
    pub pinned: BTreeSet<ExternalId>,
}

impl Named {
    /// The nodes that a job's user names, as a list; empty without any.
    pub(super) fn wish(&self, job: ExternalId) -> &str {
        self.wishes.get(&job).map_or("", String::as_str)
    }
}

impl Look for Seen {
    fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.snapshot
    }

    fn says(&self, job: ExternalId) -> Option<String> {
        let place = self.queue.iter().find(|place| place.job == Some(job))?;
        let higher = self
            .queue
            .iter()
            .filter(|other| other.factor > place.factor)
            .count();
        Some(format!(
            "Slurm: {}; site factor {}, which {higher} of {} that wait exceed.",
            place.reason,
            place.factor,
            self.queue.len()
        ))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn name(&self, job: ExternalId) -> String {
        format!("job {job}")
    }
}
