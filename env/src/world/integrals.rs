//! What rewards are made of: sums over time, kept while the clock goes on.

/// Time integrals over the run, from which rewards are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Integrals {
    /// Jobs in the system x s. By Little's law its final value is the sum of all JCTs.
    pub jobs_s: f64,
    /// Sum over jobs in the system of 1 / isolated run time (bounded at 10 s), x s: the sum of all slowdowns, unbounded below.
    pub slowdown: f64,
    /// Held GPUs x s.
    pub held_gpu_s: f64,
    /// Jobs that wait x s: the sum of all times without GPUs.
    pub waiting_s: f64,
    /// Run time beyond the best possible, s ([`World::excess_run_s`](super::World::excess_run_s)); an environment keeps it where its
    /// reward names it, or sums of the program's own.
    pub excess_run_s: f64,
    /// Free GPUs x s.
    pub idle_gpu_s: f64,
    /// Jobs that have left.
    pub finished_jobs: f64,
    /// Times that a scheduler has stopped a running job.
    pub stopped_jobs: f64,
    /// Time, s.
    pub elapsed_s: f64,
}

impl Integrals {
    /// What was gained since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Integrals) -> Integrals {
        Integrals {
            jobs_s: self.jobs_s - earlier.jobs_s,
            slowdown: self.slowdown - earlier.slowdown,
            held_gpu_s: self.held_gpu_s - earlier.held_gpu_s,
            waiting_s: self.waiting_s - earlier.waiting_s,
            excess_run_s: self.excess_run_s - earlier.excess_run_s,
            idle_gpu_s: self.idle_gpu_s - earlier.idle_gpu_s,
            finished_jobs: self.finished_jobs - earlier.finished_jobs,
            stopped_jobs: self.stopped_jobs - earlier.stopped_jobs,
            elapsed_s: self.elapsed_s - earlier.elapsed_s,
        }
    }

    /// Names and values of the first four in a fixed order: what Python is shown.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, f64); 4] {
        [
            ("jobs_s", self.jobs_s),
            ("slowdown", self.slowdown),
            ("held_gpu_s", self.held_gpu_s),
            ("waiting_s", self.waiting_s),
        ]
    }
}
