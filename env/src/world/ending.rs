//! How jobs leave: their last event, their outcome, and the sums over time that they were part of.

use std::cmp::Reverse;

use pleach_scheduler::JobId;

use super::World;
use crate::metrics::JobOutcome;

impl World {
    pub(super) fn drop_stale(&mut self) {
        while let Some(Reverse((_, id, run))) = self.finishes.peek() {
            if *run == self.truth[id.index()].run {
                break;
            }
            self.finishes.pop();
        }
    }

    /// A running job is seen to have left.
    pub(super) fn finish(&mut self, id: JobId) {
        self.cluster.finish(id);
        if let Some(account) = &mut self.occupancy {
            account.ended(&self.cluster, id);
        }
        self.truth[id.index()].run += 1;
        self.book(id);
        self.writes_no_more(id);
        self.learn_speed(id);
        let ended = self.truth[id.index()].ended();
        self.told_ended(id, ended, 0.0);
        self.record(id);
    }

    /// Books a job out that has left the tables.
    pub(super) fn record(&mut self, id: JobId) {
        if self.truth[id.index()].unseen.is_none() {
            self.leave(id);
        }
        let (job, truth) = (self.cluster.job(id), &self.truth[id.index()]);
        let finish = truth.unseen.map_or(self.cluster.now(), |end| end.at);
        self.num_finished += 1;
        let first_start = truth.first_begin.or(job.first_start).unwrap_or(truth.submit);
        self.outcomes[id.index()] = Some(JobOutcome {
            submit_s: truth.submit.as_secs_f64(),
            first_start_s: first_start.min(finish).as_secs_f64(),
            finish_s: finish.as_secs_f64(),
            isolated_s: truth.isolated_s,
            num_gpus: truth.submission.num_gpus,
            tenant: truth.submission.tenant.0,
            num_preemptions: job.num_preemptions,
            outcome: truth.outcome(),
            num_failures: job.num_failures,
            lost_s: truth.lost_s,
            work_s: truth.work_s - truth.rest_s.max(0.0),
            held_s: job.held_s,
            attained_gpu_s: job.attained_gpu_s,
        });
    }

    pub(super) fn integrate(&mut self, dt_s: f64) {
        let in_system = self.next_arrival - self.num_left;
        self.integrals.jobs_s += in_system as f64 * dt_s;
        self.integrals.slowdown += self.weight_in_system * dt_s;
        self.integrals.held_gpu_s += f64::from(self.cluster.num_gpus() - self.cluster.num_free()) * dt_s;
        self.integrals.waiting_s += self.cluster.num_pending() as f64 * dt_s;
        self.integrals.idle_gpu_s += f64::from(self.cluster.num_free()) * dt_s;
        self.integrals.elapsed_s += dt_s;
        if let Some(leases) = &mut self.leases {
            leases.held_gpu_s += f64::from(leases.num_gpus) * dt_s;
        }
        if let Some(by_tenant) = &mut self.by_tenant {
            by_tenant.add(&self.cluster, dt_s);
        }
    }

    /// A job is no longer in the system, seen or not.
    pub(super) fn leave(&mut self, id: JobId) {
        self.num_left += 1;
        self.integrals.finished_jobs += 1.0;
        self.weight_in_system -= self.truth[id.index()].weight();
        self.best_left_s += self.truth[id.index()].isolated_s;
    }
}
