//! A cluster written down and set up again by its records, as daemons set theirs up: what tests compare.
//!
//! Jobs that have left are not in it, so rows differ; nor are decisions that wait to be taken and jobs whose change of rate no
//! program asked for: take both before.

use std::collections::BTreeSet;

use super::jobs::record::{Instance, JobRecord, RunRecord};
use super::jobs::shape::Shape;
use super::tables::{JobState, NodeState};
use super::{Capabilities, Cluster};
use crate::cluster_spec::{AllowedNodes, ClusterSpec, ModelClass};
use crate::ids::{JobId, NodeId, Time};
use crate::problem::Problem;

/// Everything that a cluster knows, apart from jobs that have left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterSnapshot {
    now: Time,
    spec: ClusterSpec,
    classes: Vec<ModelClass>,
    capabilities: Capabilities,
    /// Nodes that are draining or down.
    nodes: Vec<(NodeId, NodeState)>,
    /// Sets of nodes that jobs may have, by their numbers from 1 on.
    allowed: Vec<Vec<NodeId>>,
    /// What GPUs come with, in the order of their numbers: demands are sorted by it.
    shapes: Vec<Shape>,
    /// Jobs that came without a name so far.
    num_numbered: u64,
    /// Jobs that wait or run, in the order in which they came.
    jobs: Vec<JobRecord>,
}

impl Cluster {
    /// Writes the cluster down as it is now.
    pub(crate) fn snapshot(&self) -> ClusterSnapshot {
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
            now: self.now,
            spec: (*self.facts.spec).clone(),
            classes: self.facts.classes.clone(),
            capabilities: self.facts.capabilities,
            nodes: not_up
                .map(|(row, node)| (NodeId(row as u32), node.state))
                .collect(),
            allowed: self.sets(),
            shapes: shapes.into_iter().map(|id| self.shape(id)).collect(),
            num_numbered: self.jobs.num_numbered,
            jobs: rows.map(|id| self.record_of(id)).collect(),
        }
    }

    /// The nodes of each set, by their numbers from 1 on.
    fn sets(&self) -> Vec<Vec<NodeId>> {
        let of_set = |set: u16| {
            let rows = (0..self.places.nodes.len()).map(|row| NodeId(row as u32));
            rows.filter(|node| self.allows(AllowedNodes(set), *node))
                .collect()
        };
        let numbers = (1..).take_while(|set| self.jobs.allowed.knows(AllowedNodes(*set)));
        numbers.map(of_set).collect()
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
    pub(crate) fn restore(snapshot: &ClusterSnapshot) -> Result<Cluster, Problem> {
        let mut cluster = Cluster::new(&snapshot.spec, &snapshot.classes, snapshot.capabilities)?;
        cluster.now = snapshot.now;
        for (node, state) in &snapshot.nodes {
            cluster.set_node_state(*node, *state, &mut Vec::new());
        }
        for nodes in &snapshot.allowed {
            cluster.allow(nodes.iter().copied());
        }
        for shape in &snapshot.shapes {
            cluster.number_shape(*shape);
        }
        for record in &snapshot.jobs {
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
