//! When jobs write checkpoints, what that costs them, and what a stop leaves of their work.

use crate::cluster::Cluster;
use crate::cluster::capabilities::{GIB, class_cost_s};
use crate::ids::{ClassId, JobId};
use crate::physics::storage::Storage;

/// Number of jobs that write, where no other is known to.
pub(in crate::cluster) const ALONE: f64 = 1.0;

impl Cluster {
    /// What a first start and a restart of a gang of a class cost, s. Saving before a stop is paid with the restart.
    #[must_use]
    #[inline]
    pub fn costs_s(&self, class: ClassId, num_gpus: u32) -> (f64, f64) {
        if self.facts.costs_by_gang {
            self.costs_of_gang_s(class, num_gpus)
        } else {
            self.facts.class_costs_s[class.index()]
        }
    }

    fn costs_of_gang_s(&self, class: ClassId, num_gpus: u32) -> (f64, f64) {
        let of = &self.facts.classes[class.index()];
        let (start_s, restart_s) = class_cost_s(of, num_gpus, self.facts.storage, &self.facts.capabilities);
        let save_s = match of.restart_cost_s {
            None if self.saves_at_stop(class, num_gpus, ALONE) => self.save_s(class, num_gpus, ALONE),
            // A measured restart has everything in it.
            _ => 0.0,
        };
        (start_s, restart_s + save_s)
    }

    /// Where checkpoints lie.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.facts.storage
    }

    /// Whether the next start of a job, or the one that was just made, reads its state from the store, as far as that is known.
    #[must_use]
    pub fn loads_at_start(&self, id: JobId) -> bool {
        let job = &self.jobs.rows[id.index()];
        let of = &self.facts.classes[job.request.class.index()];
        let comes_back = job.num_preemptions + job.num_failures > 0;
        self.facts.costs_by_gang
            && !job.is_lease
            && of.restart_cost_s.is_none()
            && (comes_back || of.checkpoint_interval_s.is_none())
    }

    /// What a start takes longer because so many jobs load, this one included, s.
    #[must_use]
    pub fn waits_for_others_s(&self, id: JobId, num_loading: usize) -> f64 {
        let request = &self.jobs.rows[id.index()].request;
        let state_gb = self.facts.classes[request.class.index()].state_gib * GIB / 1e9;
        let load_s = |num_loading| self.facts.storage.load_s(state_gb, request.num_gpus, num_loading);
        load_s(num_loading) - load_s(1)
    }

    /// For how long a job that is stopped saves while so many jobs write, this one included, and how much longer than alone that
    /// makes its restart, which pays for it; s. A job that cannot save within its grace among so many has tried for that long.
    #[must_use]
    pub fn save_at_stop_s(&self, id: JobId, num_writing: f64) -> (f64, f64) {
        let request = &self.jobs.rows[id.index()].request;
        let (class, num_gpus) = (request.class, request.num_gpus);
        let grace_s = self.facts.capabilities.stop_grace_s.unwrap_or(f64::INFINITY);
        let save_s = |num_writing| self.save_s(class, num_gpus, num_writing).min(grace_s);
        let in_company_s = save_s(num_writing);
        // A measured restart has everything in it.
        let is_whole = self.facts.classes[class.index()].restart_cost_s.is_some();
        let waits_s = if is_whole {
            0.0
        } else {
            in_company_s - save_s(ALONE)
        };
        (in_company_s, waits_s)
    }

    /// How a running job that writes checkpoints fares while so many jobs write, itself included, where it would progress at
    /// `rate` alone: the part of that rate that it keeps, and the part of its time in which it writes, both in [0, 1].
    #[must_use]
    pub fn among_writers(&self, id: JobId, rate: f64, num_writing: f64) -> (f64, f64) {
        let request = &self.jobs.rows[id.index()].request;
        let (class, num_gpus) = (request.class, request.num_gpus);
        let of = &self.facts.classes[class.index()];
        let Some(interval_s) = of.checkpoint_interval_s else {
            return (1.0, 0.0);
        };
        if !self.facts.capabilities.class_checkpoints {
            return (1.0, 0.0);
        }
        let stall_s = |num_writing| {
            self.facts
                .storage
                .stall_s(of.state_gib * GIB / 1e9, num_gpus, num_writing)
        };
        let kept = 1.0 / (1.0 + rate * (stall_s(num_writing) - stall_s(ALONE)) / interval_s);
        let writes = self.save_s(class, num_gpus, num_writing) * rate * kept / interval_s;
        (kept, writes.min(1.0))
    }

    /// Seconds until the state of a gang of a class is in the store, while so many write; 0 for one that writes no checkpoints.
    fn save_s(&self, class: ClassId, num_gpus: u32, num_writing: f64) -> f64 {
        let of = &self.facts.classes[class.index()];
        match of.checkpoint_interval_s {
            Some(_) => self
                .facts
                .storage
                .save_s(of.state_gib * GIB / 1e9, num_gpus, num_writing),
            None => 0.0,
        }
    }

    /// Whether a gang of a class that is stopped can save first, while so many write.
    fn saves_at_stop(&self, class: ClassId, num_gpus: u32, num_writing: f64) -> bool {
        let grace_s = self.facts.capabilities.stop_grace_s;
        grace_s.is_none_or(|grace_s| self.save_s(class, num_gpus, num_writing) <= grace_s)
    }

    /// Whether a job that is stopped writes its state: not one that has nothing to write or, as far as it knows, no time.
    #[must_use]
    pub fn writes_at_stop(&self, id: JobId) -> bool {
        let request = &self.jobs.rows[id.index()].request;
        let writes = self.facts.classes[request.class.index()]
            .checkpoint_interval_s
            .is_some();
        writes && self.saves_at_stop(request.class, request.num_gpus, ALONE)
    }

    /// Work between two checkpoints of a class, in seconds of the reference run; none: nothing it did is ever lost.
    #[must_use]
    pub fn checkpoint_interval_s(&self, class: ClassId) -> Option<f64> {
        let own = self.facts.classes[class.index()].checkpoint_interval_s;
        let own = own.filter(|_| self.facts.capabilities.class_checkpoints);
        own.or(self.facts.capabilities.checkpoint_interval_s)
    }

    /// What a failure leaves of `done_s` of work, of which a stop has saved `saved_s`; in seconds of the reference run.
    #[must_use]
    pub fn kept_at_failure_s(&self, class: ClassId, done_s: f64, saved_s: f64) -> f64 {
        last_checkpoint_s(done_s, self.checkpoint_interval_s(class)).max(saved_s.min(done_s))
    }

    /// What being stopped leaves of the work of a job, as [`Cluster::kept_at_failure_s`]: all of it where it is given the time to
    /// save while so many jobs write, this one included.
    #[must_use]
    pub fn kept_at_stop_s(&self, id: JobId, done_s: f64, saved_s: f64, num_writing: f64) -> f64 {
        let request = &self.jobs.rows[id.index()].request;
        if self.saves_at_stop(request.class, request.num_gpus, num_writing) {
            done_s
        } else {
            self.kept_at_failure_s(request.class, done_s, saved_s)
        }
    }

    /// The rate of a gang with its checkpoints, of one that would progress at `rate` without: `t` of work take `t / rate` and a
    /// stall.
    pub(in crate::cluster) fn rate_with_checkpoints(&self, class: ClassId, num_gpus: u32, rate: f64) -> f64 {
        let of = &self.facts.classes[class.index()];
        match of.checkpoint_interval_s {
            Some(interval_s) if self.facts.capabilities.class_checkpoints => {
                let stall_s = self
                    .facts
                    .storage
                    .stall_s(of.state_gib * GIB / 1e9, num_gpus, ALONE);
                rate / (1.0 + rate * stall_s / interval_s)
            }
            _ => rate,
        }
    }
}

/// What a checkpoint every `interval_s` of work has kept of `executed_s`; all of it without an interval.
fn last_checkpoint_s(executed_s: f64, interval_s: Option<f64>) -> f64 {
    match interval_s {
        Some(interval_s) if interval_s.is_finite() && interval_s > 0.0 => {
            (executed_s / interval_s).floor() * interval_s
        }
        Some(_) => 0.0,
        None => executed_s,
    }
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
