//! What running jobs have received, side by side: sorting a hundred of them by attained service reads a few pages of memory,
//! not a row of the job table for each.
//!
//! Only what stays the same while a job runs is kept here; the job table remains the record.

use crate::cluster::tables::Job;
use crate::ids::{GpuTypeId, JobId, Time};

/// A running job and what its attained service is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunningService {
    /// The job.
    pub(crate) job: JobId,
    /// When the present run began.
    run_start: Time,
    /// GPU·s received before that.
    attained_gpu_s: f64,
    /// GPUs that it holds, fractions counted as such.
    gpus_held: f64,
}

impl RunningService {
    /// The service of a job that runs.
    pub(in crate::cluster) fn of(id: JobId, job: &Job) -> RunningService {
        RunningService {
            job: id,
            run_start: job.run_start,
            attained_gpu_s: job.attained_gpu_s,
            gpus_held: job.gpus_held(),
        }
    }

    /// GPU·s received until `now`, as [`Job::attained_gpu_s_at`] says of the job.
    #[inline]
    pub(crate) fn attained_gpu_s_at(&self, now: Time) -> f64 {
        self.attained_gpu_s + self.gpus_held * now.since(self.run_start).as_secs_f64().max(0.0)
    }
}

/// The services of all running jobs, in no particular order.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct AttainedService {
    /// `[type][place]`
    types: Vec<Vec<RunningService>>,
    /// Place of each running job among those of its type. `[job]`
    places: Vec<u32>,
}

impl AttainedService {
    pub(in crate::cluster) fn new(num_types: usize) -> AttainedService {
        AttainedService {
            types: vec![Vec::new(); num_types],
            places: Vec::new(),
        }
    }

    pub(in crate::cluster) fn of(&self, kind: GpuTypeId) -> &[RunningService] {
        &self.types[kind.index()]
    }

    pub(in crate::cluster) fn begin(&mut self, kind: GpuTypeId, service: RunningService) {
        let rows = &mut self.types[kind.index()];
        if self.places.len() <= service.job.index() {
            self.places.resize(service.job.index() + 1, 0);
        }
        self.places[service.job.index()] = rows.len() as u32;
        rows.push(service);
    }

    pub(in crate::cluster) fn end(&mut self, kind: GpuTypeId, job: JobId) {
        let (rows, place) = (&mut self.types[kind.index()], self.places[job.index()]);
        rows.swap_remove(place as usize);
        if let Some(moved) = rows.get(place as usize) {
            self.places[moved.job.index()] = place;
        }
    }

    /// Makes room for so many jobs more, and for so many that run at once on each type.
    pub(in crate::cluster) fn reserve(&mut self, num_jobs: usize, num_running: impl Iterator<Item = usize>) {
        self.places.reserve(num_jobs);
        for (rows, num) in self.types.iter_mut().zip(num_running) {
            rows.reserve(num.saturating_sub(rows.len()));
        }
    }
}
