//! One look at Slurm.

use pleach_scheduler::ExternalId;

use super::queue::Place;
use crate::snapshot::Snapshot;
use crate::system::Look;

/// What Slurm showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Jobs and nodes of the partition.
    pub snapshot: Snapshot,
    /// Names of parts of heterogeneous jobs that are held for the daemon and have to be given back; where Slurm starts the jobs
    /// itself, of all jobs that a daemon before has marked.
    pub parts: Vec<String>,
    /// Where Slurm is told an order: every job of the partition that waits, by arrival.
    pub queue: Vec<Place>,
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

    fn name(&self, job: ExternalId) -> String {
        format!("job {job}")
    }
}
