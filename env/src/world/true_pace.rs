//! What is true of a start where beliefs are not exact: its pace, what it costs, and who else loads from the store meanwhile.

use pleach_scheduler::cluster::{Capabilities, moved};
use pleach_scheduler::decision::{Action, Decision};
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{ConfigError, Estimate, JobId, Time};
use pleach_workloads::{Seed, Workload};

use super::World;
use crate::beliefs::{BeliefErrors, Truths};

impl World {
    /// A world whose scheduler is wrong about speeds and costs; otherwise as [`World::new`].
    ///
    /// # Errors
    /// As [`World::new`], and errors of beliefs out of their ranges.
    pub(crate) fn with_beliefs(
        workload: &Workload,
        capabilities: Capabilities,
        estimates: &[Estimate],
        errors: BeliefErrors,
        seed: Seed,
    ) -> Result<World, ConfigError> {
        errors.validate()?;
        let truths = Truths::new(errors, &workload.classes, seed);
        let mut world = World::of(
            workload,
            &truths.believed(&workload.classes),
            capabilities,
            estimates,
        )?;
        world.truths = Some(Box::new(truths));
        Ok(world)
    }

    /// Counts the jobs that load together because they were started together.
    pub(super) fn count_loads(&mut self, decisions: &[Decision]) {
        if self.cluster.capabilities().overheads == Some(Overheads::ByClass) {
            let now = self.cluster.now();
            self.loads.until.retain(|until| *until > now);
            let starts = decisions
                .iter()
                .filter(|decision| decision.action == Action::Start);
            self.loads.num_new = starts
                .filter(|start| self.cluster.loads_at_start(start.row))
                .count();
        }
    }

    /// Sets what is true of a run that begins now beside what is believed.
    pub(super) fn set_truth_of_start(&mut self, id: JobId) {
        let (now, job) = (self.cluster.now(), self.cluster.job(id));
        let class = self.cluster.class(job.request.class);
        let truth = &mut self.truth[id.index()];
        (truth.since, truth.cost_left_s) = (now, job.cost_left_s);
        let overheads = &self.cluster.capabilities().overheads;
        if let Some(overheads @ Overheads::TaccEmpirical) = overheads
            && job.num_preemptions + job.num_failures > 0
            && !self.cluster.capabilities().restart_cost_is_work
            && class.restart_cost_s.is_none()
        {
            // The scheduler believes the median; the truth is drawn for every restart. A cost of the class' own is known.
            let draw = self
                .seed
                .child("restart", u64::from(id.0))
                .child("run", u64::from(truth.run))
                .0;
            let moved = moved(class, job.request.num_gpus, self.cluster.storage());
            truth.cost_left_s += overheads.migration_s(moved, draw) - self.cluster.restart_cost_s(id);
        }
        if self.cluster.loads_at_start(id) {
            // The store is divided among those who load when this one begins.
            let num_loading = self.loads.until.len() + self.loads.num_new;
            truth.cost_left_s += self.cluster.waits_for_others_s(id, num_loading);
            self.loads.num_new = self.loads.num_new.saturating_sub(1);
            self.loads
                .until
                .push(now + Time::from_secs_f64(truth.cost_left_s));
        }
        if let Some(truths) = &self.truths {
            let class = job.request.class.index();
            truth.pace = truths.pace(class, job.gpu_type.index(), now.as_secs_f64());
            truth.cost_left_s *= truths.cost(id.0, truth.run);
        }
        truth.rate = job.rate * truth.pace;
    }

    /// A job has ended: what its last run tells of the speed of its class there. Copies and mixed types tell of no type alone.
    pub(super) fn learn_speed(&mut self, id: JobId) {
        let Some(truths) = &mut self.truths else { return };
        let (job, pace) = (self.cluster.job(id), self.truth[id.index()].pace);
        let (class, kind) = (job.request.class, job.gpu_type);
        let row = self.cluster.class(class);
        if row.elastic.is_some() || job.is_forked || row.speed[kind.index()] == 0.0 {
            return;
        }
        let speed = row.speed[kind.index()];
        if let Some(change) = truths.learn(class.index(), kind.index(), pace) {
            self.cluster.believe_speed(class, kind, speed * change);
        }
    }
}

#[cfg(test)]
#[path = "true_pace_tests.rs"]
mod tests;
