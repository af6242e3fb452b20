//! Leases in a world: rows of the cluster that are no jobs of the workload, granted and ended from outside between events.
//!
//! A lease takes the next row when it is granted, as if it were the next job to come; jobs that come later move up by one. It counts
//! as left from the beginning, so that sums over jobs and the end of the run do not know it, and what the truth draws of a job goes
//! by its number among the jobs ([`World::number_of`]), so that leases change no job's fate.

use pleach_scheduler::cluster::{JobState, Placement, Submission};
use pleach_scheduler::{JobId, Problem};

use super::World;
use super::training::Training;

impl World {
    /// Grants a lease now. Follow it with [`World::carry_out`].
    ///
    /// # Errors
    /// A request that no cluster of this kind can meet.
    ///
    /// # Panics
    /// If the GPUs are not free.
    pub fn grant(&mut self, request: Submission, placement: Placement) -> Result<JobId, Problem> {
        let id = self.cluster.submit_lease(request)?;
        let row = id.index();
        debug_assert_eq!(row, self.next_arrival, "rows are those of jobs that have come");
        let truth = super::truth::Truth::of(self.cluster.now(), request, f64::INFINITY, f64::INFINITY);
        self.truth.insert(row, truth);
        self.outcomes.insert(row, None);
        self.next_arrival += 1;
        (self.num_left, self.num_finished) = (self.num_left + 1, self.num_finished + 1);
        self.cluster.start(id, placement);
        let leases = self.leases.get_or_insert_default();
        leases.rows.push(id);
        leases.num_gpus += self.cluster.job(id).num_held;
        Ok(id)
    }

    /// Ends a lease now. Follow it with [`World::carry_out`].
    ///
    /// # Panics
    /// If it is none that runs.
    pub fn end_lease(&mut self, id: JobId) {
        let job = self.cluster.job(id);
        assert!(job.is_lease, "{id:?} is no lease");
        if let Some(leases) = &mut self.leases {
            leases.num_gpus -= job.num_held;
        }
        self.cluster.finish(id);
    }

    /// GPUs that jobs hold, whole GPUs each.
    #[must_use]
    pub fn training_gpus(&self) -> u32 {
        let leased = self.leases.as_ref().map_or(0, |leases| leases.num_gpus);
        self.cluster.num_gpus() - self.cluster.num_free() - leased
    }

    /// GPU·s that leases have held.
    #[must_use]
    pub fn leased_gpu_s(&self) -> f64 {
        self.leases.as_ref().map_or(0.0, |leases| leases.held_gpu_s)
    }

    /// What training has had and done so far.
    pub fn training(&mut self) -> Training {
        let mut training = Training {
            held_gpu_s: self.integrals.held_gpu_s - self.leased_gpu_s(),
            ..Training::default()
        };
        for row in 0..self.next_arrival {
            let job = &self.cluster.jobs()[row];
            if job.is_lease {
                continue;
            }
            if job.state == JobState::Running {
                self.book(JobId(row as u32));
            }
            let truth = &self.truth[row];
            let gpus = truth.submission.gpus();
            training.done_gpu_s += gpus * truth.done_s();
            training.lost_gpu_s += gpus * truth.lost_s;
        }
        training
    }

    /// Number of a job among the jobs: its row, without the leases before it.
    pub(super) fn number_of(&self, id: JobId) -> u32 {
        match &self.leases {
            None => id.0,
            Some(leases) => id.0 - leases.rows.partition_point(|row| *row < id) as u32,
        }
    }
}
