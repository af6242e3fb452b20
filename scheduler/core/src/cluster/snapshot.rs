//! A cluster written down: what a daemon needs to begin again where it ended, and whoever replays a decision to see the same.
//!
//! The restored cluster takes the same decisions as the one that was written down, bit for bit: jobs in their order, GPUs
//! with the residents in theirs, every number as it was. Jobs that have left are not in it, so rows differ ([`Cluster::forget_ended`]);
//! nor are decisions that wait to be taken and jobs whose change of rate nobody asked for: take both before. The reader trusts
//! nothing: a snapshot that contradicts itself is an error with the value in it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use super::jobs::record::{Instance, JobRecord, RunRecord};

use super::jobs::record::COUNT_MAX;
use super::jobs::shape::Shape;
use super::tables::{JobState, NodeState};
use super::{Capabilities, Cluster};
use crate::cluster_spec::{ClusterSpec, ModelClass};
use crate::ids::{JobId, NodeId, Time};
use crate::problem::Problem;

/// What the key `version` says. A change of the format is a new number.
pub const VERSION: u32 = 1;

/// Most bytes of a snapshot: a million jobs that wait or run, at about a kilobyte each.
pub const BYTES_MAX: usize = 1 << 30;

/// The last time at which a cluster can be restored, so that its clock can go on.
const NOW_MAX: Time = Time(i64::MAX / 2);

/// Everything that a cluster knows, apart from jobs that have left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSnapshot {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// The clock.
    pub now: Time,
    /// Hardware and tenants.
    pub spec: ClusterSpec,
    /// Model classes.
    pub classes: Vec<ModelClass>,
    /// What the cluster can do, and what it costs.
    pub capabilities: Capabilities,
    /// Nodes that are draining or down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeRecord>,
    /// Sets of nodes that jobs may have, by their numbers from 1 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Vec<NodeId>>,
    /// What GPUs come with, in the order of their numbers: demands are sorted by it.
    pub shapes: Vec<Shape>,
    /// Jobs that came without a name so far.
    #[serde(default)]
    pub num_numbered: u64,
    /// Jobs that wait or run, in the order in which they came.
    pub jobs: Vec<JobRecord>,
}

/// A node that does not simply take jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRecord {
    /// The node.
    pub node: NodeId,
    /// Whether it takes part.
    pub state: NodeState,
}

/// A snapshot that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Not the text of a snapshot.
    #[error("snapshot: {0}")]
    Text(String),
    /// Longer than [`BYTES_MAX`].
    #[error("snapshot: {found} bytes; at most {BYTES_MAX} are read")]
    TooLong {
        /// Bytes in the text.
        found: usize,
    },
    /// Another version of the format.
    #[error("snapshot: version {found}; this program reads version {VERSION}. Use the program that wrote it")]
    Version {
        /// The version found.
        found: u32,
    },
    /// Values that cannot be, or not together.
    #[error("snapshot: {0}")]
    Value(#[from] Problem),
}

impl ClusterSnapshot {
    /// Reads a snapshot from JSON; its version comes before all else.
    ///
    /// # Errors
    /// A text that is too long or no snapshot, another version.
    pub fn from_json(text: &str) -> Result<ClusterSnapshot, SnapshotError> {
        #[derive(Deserialize)]
        struct Header {
            version: u32,
        }
        if text.len() > BYTES_MAX {
            return Err(SnapshotError::TooLong { found: text.len() });
        }
        let bad = |error: serde_json::Error| SnapshotError::Text(error.to_string());
        let header: Header = serde_json::from_str(text).map_err(bad)?;
        check_version(header.version)?;
        serde_json::from_str(text).map_err(bad)
    }

    /// The snapshot as JSON, the same bytes for the same cluster.
    ///
    /// # Errors
    /// A number that JSON does not have; a cluster that was made by this program has none.
    pub fn to_json(&self) -> Result<String, SnapshotError> {
        serde_json::to_string(self).map_err(|error| SnapshotError::Text(error.to_string()))
    }
}

fn check_version(found: u32) -> Result<(), SnapshotError> {
    if found == VERSION {
        Ok(())
    } else {
        Err(SnapshotError::Version { found })
    }
}

impl Cluster {
    /// Writes the cluster down as it is now.
    #[must_use]
    pub fn snapshot(&self) -> ClusterSnapshot {
        let live = || {
            self.jobs
                .rows
                .iter()
                .filter(|job| job.state != JobState::Finished)
        };
        let shapes: BTreeSet<_> = live().flat_map(|job| [job.shape, job.granted]).collect();
        let not_up = self
            .places
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.state != NodeState::Up);
        let rows = (0..self.jobs.rows.len()).map(|row| JobId(row as u32));
        let rows = rows.filter(|id| self.jobs.rows[id.index()].state != JobState::Finished);
        ClusterSnapshot {
            version: VERSION,
            now: self.now,
            spec: (*self.facts.spec).clone(),
            classes: self.facts.classes.clone(),
            capabilities: self.facts.capabilities,
            nodes: not_up
                .map(|(row, node)| NodeRecord {
                    node: NodeId(row as u32),
                    state: node.state,
                })
                .collect(),
            allowed: self.allowed_sets(),
            shapes: shapes.into_iter().map(|id| self.shape(id)).collect(),
            num_numbered: self.jobs.num_numbered,
            jobs: rows.map(|id| self.record_of(id)).collect(),
        }
    }

    fn record_of(&self, id: JobId) -> JobRecord {
        let job = &self.jobs.rows[id.index()];
        JobRecord {
            attained_gpu_s: job.attained_gpu_s,
            held_s: job.held_s,
            executed_s: job.executed_s,
            added_s: job.added_s,
            saved_s: job.saved_s,
            first_start: job.first_start,
            num_preemptions: job.num_preemptions,
            num_failures: job.num_failures,
            run: (job.state == JobState::Running).then(|| self.run_of(id)),
            ..JobRecord::new(job.external, job.submit, job.request)
        }
    }

    fn run_of(&self, id: JobId) -> RunRecord {
        let job = &self.jobs.rows[id.index()];
        let granted = self.shape(job.granted);
        let mut instances = Vec::new();
        for slice in &job.placement {
            for gpu in self.shared_gpus_of(slice.node) {
                let own = gpu.residents.iter().find(|resident| resident.job == id);
                if let Some(start) = own.and_then(|resident| resident.mig_start) {
                    instances.push(Instance {
                        node: slice.node,
                        gpu: gpu.gpu,
                        start,
                    });
                }
            }
        }
        RunRecord {
            placement: job.placement.clone(),
            start: job.run_start,
            start_number: job.start_number,
            cpu_milli_per_gpu: granted.cpu_milli,
            memory_mib_per_gpu: granted.memory_mib,
            is_forked: job.is_forked,
            rate_alone: Some(job.rate_alone),
            rate_since: job.rate_since,
            cost_left_s: job.cost_left_s,
            instances,
        }
    }

    /// The cluster that was written down.
    ///
    /// # Errors
    /// Another version; a description, node, job or run that cannot be, or not beside the others.
    pub fn restore(snapshot: &ClusterSnapshot) -> Result<Cluster, SnapshotError> {
        check_version(snapshot.version)?;
        let mut cluster = Cluster::new(&snapshot.spec, &snapshot.classes, snapshot.capabilities)?;
        let refuse = |key: &str, value: String, allowed: String| {
            let hint = "a snapshot is written by a program, and not to be edited";
            Err(SnapshotError::Value(Problem::new(key, value, allowed, hint)))
        };
        if !(Time::ZERO..=NOW_MAX).contains(&snapshot.now) {
            return refuse(
                "now",
                snapshot.now.0.to_string(),
                format!("0 to {} µs", NOW_MAX.0),
            );
        }
        if snapshot.num_numbered > COUNT_MAX {
            let value = snapshot.num_numbered.to_string();
            return refuse("num_numbered", value, format!("0 to {COUNT_MAX}"));
        }
        cluster.now = snapshot.now;
        for record in &snapshot.nodes {
            if record.node.index() >= cluster.places.nodes.len() {
                let allowed = format!("0 to {}", cluster.places.nodes.len() - 1);
                return refuse("nodes.node", record.node.0.to_string(), allowed);
            }
            cluster.set_node_state(record.node, record.state, &mut Vec::new());
        }
        for (row, nodes) in snapshot.allowed.iter().enumerate() {
            let number = cluster.allow(nodes.iter().copied());
            if number.map(|number| usize::from(number.0)) != Some(row + 1) {
                let allowed = "sets of some nodes that are there, each once".into();
                return refuse("allowed", format!("set {}", row + 1), allowed);
            }
        }
        for shape in &snapshot.shapes {
            if !cluster.jobs.allowed.knows(shape.nodes) {
                let allowed = format!("0 to {}", snapshot.allowed.len());
                return refuse("shapes.nodes", shape.nodes.0.to_string(), allowed);
            }
            shape.tasks.validate("shapes.tasks")?;
            if !(1..=1000).contains(&shape.gpu_milli) || cluster.number_shape(*shape).is_none() {
                return refuse(
                    "shapes",
                    format!("{shape:?}"),
                    "at most 65,536, of 1 to 1000 thousandths".into(),
                );
            }
        }
        let mut names = BTreeSet::new();
        for record in &snapshot.jobs {
            let is_given = record
                .job
                .own_number()
                .is_none_or(|number| number < snapshot.num_numbered);
            if !names.insert(record.job) || !is_given {
                let allowed = format!("names that differ, #NUMBER below {}", snapshot.num_numbered);
                return refuse("jobs.job", record.job.to_string(), allowed);
            }
            let id = cluster.admit_row(record)?;
            if record.job.own_number().is_none() {
                cluster.jobs.names.insert(record.job, id);
            }
        }
        cluster.jobs.num_numbered = snapshot.num_numbered;
        cluster.resume_all(&snapshot.jobs)?;
        Ok(cluster)
    }

    /// Puts the jobs of a snapshot where they were, those that run in the order in which they came to their GPUs.
    fn resume_all(&mut self, records: &[JobRecord]) -> Result<(), Problem> {
        let rows = || records.iter().zip((0..).map(JobId));
        let mut running: Vec<_> = rows()
            .filter_map(|(record, id)| Some((record, record.run.as_ref()?, id)))
            .collect();
        running.sort_by_key(|(_, run, id)| (run.start_number, *id));
        for (record, run, id) in &running {
            self.resume(*id, record, run)?;
        }
        for (_, _, id) in &running {
            self.settle_rate(*id);
        }
        for (_, id) in rows().filter(|(record, _)| record.run.is_none()) {
            self.enqueue(id);
        }
        Ok(())
    }
}
