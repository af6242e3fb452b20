//! One look at Slurm.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

use super::apart::Steps;
use super::parts;
use super::queue::Waiting;
use crate::snapshot::Snapshot;
use crate::system::Look;

/// What Slurm showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Jobs and nodes of the partition.
    pub snapshot: Snapshot,
    /// What has to be given back: parts of heterogeneous jobs that are held for the daemon; where Slurm starts the jobs itself, what a
    /// daemon before has left behind.
    pub parts: Vec<parts::Named>,
    /// Where Slurm is told an order: every job of the partition that waits.
    pub waiting: Waiting,
    /// Whose nodes by name are whose, where jobs are held.
    pub named: Named,
    /// What is done about jobs that the tables cannot say.
    pub apart: Steps,
    /// Signs of another daemon; none: there are none.
    pub rival: Option<String>,
    /// What Slurm did not tell.
    pub notes: Vec<String>,
}

/// Nodes by name: those of users, and those of the daemon that stand in their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Nodes that users shun, as lists, of the jobs for which the daemon shuns more.
    pub shuns: BTreeMap<ExternalId, String>,
    /// Nodes that users name, as lists: what they get back when a start is taken back.
    pub wishes: BTreeMap<ExternalId, String>,
    /// Jobs that were stopped while they ran, and have the nodes of that run.
    pub pinned: BTreeSet<ExternalId>,
}

impl Named {
    /// The nodes that a job's user shuns, as a list, where the daemon shuns more for it.
    pub(super) fn shuns(&self, job: ExternalId) -> Option<&str> {
        self.shuns.get(&job).map(String::as_str)
    }

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
        &self.apart.told
    }

    fn rival(&self) -> Option<&str> {
        self.rival.as_deref()
    }

    fn name(&self, job: ExternalId) -> String {
        format!("job {job}")
    }
}
