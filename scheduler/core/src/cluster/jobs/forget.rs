//! Rows of jobs that have left, given to jobs that come: a cluster that runs for months stays as large as its busiest hour.
//!
//! The jobs that wait or run move together and keep their order, so a row still says who came first and ties fall as before.
//! Shapes and demands that nobody asks for any more go with the rows.

use crate::cluster::jobs::queue::Queue;
use crate::cluster::jobs::shape::{ShapeId, Shapes};
use crate::cluster::{Cluster, Job, JobState, bits};
use crate::ids::{ExternalId, JobId};

/// Rows of ended jobs that are not worth moving the others for.
const ENDED_MIN: usize = 64;

impl Cluster {
    /// Gives the rows of ended jobs free once they are more than those of the jobs that wait or run, and more than a few; the
    /// number of rows that were freed. Asked after every pass, it costs each job a constant on average and keeps the table below
    /// twice the most jobs that were in the system at once, and a few.
    ///
    /// The rows of all other jobs change, and the numbers of shapes: a [`JobId`] from before is worthless, and
    /// [`Cluster::find`] knows the new one. Nothing is freed while decisions wait to be taken, which name rows. Not to be called within an open
    /// pass, nor under a planner that remembers jobs by their rows from one instant to the next; policies do not.
    pub fn forget_ended(&mut self) -> usize {
        let num_live = self.jobs.rows.len() - self.jobs.num_ended;
        if self.jobs.num_ended <= num_live.max(ENDED_MIN) || !self.jobs.decisions.is_empty() {
            return 0;
        }
        let num_freed = self.jobs.num_ended;
        self.move_rows();
        self.move_shapes();
        self.requeue();
        num_freed
    }

    /// The row of a job that waits or runs, by its name outside.
    #[must_use]
    pub fn find(&self, external: ExternalId) -> Option<JobId> {
        match external.own_number() {
            None => self.jobs.names.get(&external).copied(),
            // Numbers grow with the rows, but for jobs under names between them.
            Some(_) => {
                let is_it = |job: &Job| job.external == external && job.state != JobState::Finished;
                Some(JobId(self.jobs.rows.iter().position(is_it)? as u32))
            }
        }
    }

    fn move_rows(&mut self) {
        let mut num_live = 0;
        let rows: Vec<Option<JobId>> = self
            .jobs
            .rows
            .iter()
            .map(|job| {
                let row = (job.state != JobState::Finished).then_some(JobId(num_live));
                num_live += u32::from(row.is_some());
                row
            })
            .collect();
        let row_of = |id: JobId| rows[id.index()].unwrap_or(id);
        self.jobs.rows.retain(|job| job.state != JobState::Finished);
        self.jobs.num_ended = 0;
        for job in &self.jobs.rows {
            for slice in &job.placement {
                let first = self.places.nodes[slice.node.index()].first_gpu;
                for gpu in bits(slice.gpus) {
                    if let Some(owner) = &mut self.places.gpus[(first + gpu) as usize] {
                        *owner = row_of(*owner);
                    }
                }
            }
        }
        self.places.shared.rename(row_of);
        if let Some(links) = &mut self.places.links {
            links.rename(row_of);
        }
        for running in &mut self.jobs.running {
            running.rename(|(end, id)| (end, row_of(id)));
        }
        self.jobs.attained_service.rename(self.jobs.rows.len(), row_of);
        self.jobs.names.values_mut().for_each(|id| *id = row_of(*id));
        // Once each is enough for whoever asks, and nobody may ask.
        let mut seen = vec![false; self.jobs.rows.len()];
        self.jobs.rerated.retain_mut(|id| match rows[id.index()] {
            Some(row) => {
                *id = row;
                !std::mem::replace(&mut seen[row.index()], true)
            }
            None => false,
        });
    }

    /// Numbers the shapes anew that jobs ask for or hold, in their old order: demands stay in theirs.
    fn move_shapes(&mut self) {
        let mut used: Vec<ShapeId> = self
            .jobs
            .rows
            .iter()
            .flat_map(|job| [job.shape, job.granted])
            .collect();
        used.push(ShapeId::PLAIN);
        used.sort_unstable();
        used.dedup();
        let mut shapes = Shapes::new();
        let mut gpus_max = Vec::with_capacity(used.len());
        for old in &used {
            shapes.number(self.jobs.shapes.get(*old));
            gpus_max.push(std::mem::take(&mut self.jobs.shape_gpus_max[usize::from(old.0)]));
        }
        (self.jobs.shapes, self.jobs.shape_gpus_max) = (shapes, gpus_max);
        self.jobs.task_limits.retain(|tasks, _| {
            let mut kept = used
                .iter()
                .enumerate()
                .map(|(number, _)| self.jobs.shapes.get(ShapeId(number as u16)));
            kept.any(|shape| shape.tasks == *tasks)
        });
        // Numbered one by one from the plain shape, which is the first of both.
        let number_of = |old: ShapeId| ShapeId(used.partition_point(|other| *other < old) as u16);
        for job in &mut self.jobs.rows {
            (job.shape, job.granted) = (number_of(job.shape), number_of(job.granted));
        }
    }

    /// Fills the queue anew; tenants and paces know of nothing.
    fn requeue(&mut self) {
        self.jobs.pending = Queue::default();
        for row in 0..self.jobs.rows.len() {
            let id = JobId(row as u32);
            if self.jobs.rows[row].state == JobState::Pending {
                let (demand, keys) = (self.demand(id), self.queue_keys(id));
                self.jobs.pending.insert(demand, id, keys);
            }
        }
    }
}
