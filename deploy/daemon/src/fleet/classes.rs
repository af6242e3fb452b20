//! Classes of priority. Jobs of a lower one come into the tables once a policy has decided about those of the higher ones, on what
//! these leave, and stop none of them.

use std::collections::BTreeMap;

use pleach_scheduler::record::JobRecord;
use pleach_scheduler::{Cluster, ExternalId};

use crate::snapshot::{JobSeen, Snapshot};

/// Tables made from a snapshot.
#[derive(Debug)]
pub struct Fleet {
    /// The tables.
    pub cluster: Cluster,
    /// Names of the nodes. `[node]`
    pub nodes: Vec<String>,
    /// Names of the GPU types. `[type]`
    pub gpu_types: Vec<String>,
    /// Jobs that take no part in this round, and why.
    pub left_out: BTreeMap<ExternalId, String>,
    /// Leases that wait, by arrival: no policy is shown them.
    pub leases: Vec<JobRecord>,
    /// Jobs that wait for those of a higher priority to be decided about, by priority.
    pub later: BTreeMap<i32, Vec<JobRecord>>,
}

/// The highest priority of the jobs that wait and take part.
pub(super) fn highest(snapshot: &Snapshot, takes_part: &dyn Fn(&JobSeen) -> bool) -> i32 {
    let waiting = snapshot
        .jobs
        .iter()
        .filter(|job| !job.is_placed() && !job.terms.is_lease && takes_part(job));
    waiting.map(|job| job.terms.priority).max().unwrap_or(0)
}

impl Fleet {
    /// Admits the waiting jobs of the next lower priority, for which none that runs with a higher one is stopped; whether there were
    /// some.
    pub fn next_class(&mut self, snapshot: &Snapshot) -> bool {
        let Some((priority, records)) = self.later.pop_last() else {
            return false;
        };
        self.spare_above(priority, snapshot);
        self.admit_later(records);
        true
    }

    /// Before the first pass: those that are decided about first stop none of a higher priority either.
    pub fn begin_class(&mut self, snapshot: &Snapshot) {
        let waiting = snapshot.jobs.iter().filter(|job| !job.is_placed());
        let here = waiting.filter(|job| self.cluster.find(job.id).is_some());
        if let Some(priority) = here.map(|job| job.terms.priority).max() {
            self.spare_above(priority, snapshot);
        }
    }

    /// Admits all waiting jobs at once, for callers that do not go class by class.
    pub fn all_classes(&mut self) {
        while let Some((_, records)) = self.later.pop_last() {
            self.admit_later(records);
        }
    }

    /// From now on no job that runs with a higher priority is stopped.
    fn spare_above(&mut self, priority: i32, snapshot: &Snapshot) {
        let higher = snapshot.jobs.iter().filter(|job| job.is_placed());
        for job in higher.filter(|job| job.terms.priority > priority) {
            if let Some(row) = self.cluster.find(job.id) {
                self.cluster.spare(row);
            }
        }
    }

    fn admit_later(&mut self, records: Vec<JobRecord>) {
        for record in records {
            if let Err(error) = self.cluster.admit(&record) {
                self.left_out.insert(record.job, error.to_string());
            }
        }
    }
}
