//! One look at Slurm.

use pleach_scheduler::ExternalId;

use crate::snapshot::Snapshot;
use crate::system::Look;

/// What Slurm showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Jobs and nodes of the partition.
    pub snapshot: Snapshot,
    /// Names of parts of heterogeneous jobs that are held for the daemon and have to be given back.
    pub parts: Vec<String>,
}

impl Look for Seen {
    fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.snapshot
    }

    fn name(&self, job: ExternalId) -> String {
        format!("job {job}")
    }
}
