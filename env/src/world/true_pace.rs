//! What is true of a start where beliefs are not exact: its pace and what it costs.

use pleach_scheduler::cluster::{Capabilities, moved};
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{Estimate, JobId, Problem};
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
    ) -> Result<World, Problem> {
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

    /// Sets what is true of a run that begins now beside what is believed.
    pub(super) fn set_truth_of_start(&mut self, id: JobId) {
        let number = self.number_of(id);
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
                .child("restart", u64::from(number))
                .child("run", u64::from(truth.run))
                .0;
            let moved = moved(class, job.request.num_gpus, self.cluster.storage());
            truth.cost_left_s += overheads.migration_s(moved, draw) - self.cluster.restart_cost_s(id);
        }
        truth.cost_left_s += std::mem::take(&mut truth.save_waits_s);
        if self.cluster.loads_at_start(id) {
            let waits_s = self.load_waits_s(id);
            let truth = &mut self.truth[id.index()];
            truth.cost_left_s += waits_s;
            let cost_s = truth.cost_left_s;
            self.loads_for(cost_s);
        }
        let (job, truth) = (self.cluster.job(id), &mut self.truth[id.index()]);
        truth.pace = 1.0;
        if let Some(truths) = &self.truths {
            let class = job.request.class.index();
            let kind = job.gpu_type.index();
            truth.pace = truths.pace(class, kind, now.as_secs_f64());
            truth.factor_then = truths.factor(class, kind);
            truth.cost_left_s *= truths.cost(number, truth.run);
        }
        let rate = job.rate * truth.pace;
        let kept = self.begins_to_write(id, rate);
        let truth = &mut self.truth[id.index()];
        truth.pace *= kept;
        truth.rate = rate * kept;
    }

    /// A job has ended: what its last run tells of the speed of its class there. Copies and mixed types tell of no type alone.
    pub(super) fn learn_speed(&mut self, id: JobId) {
        let Some(truths) = &mut self.truths else { return };
        let (job, truth) = (self.cluster.job(id), &self.truth[id.index()]);
        let (class, kind) = (job.request.class, job.gpu_type);
        let row = self.cluster.class(class);
        if row.elastic.is_some() || job.is_forked || row.speed[kind.index()] == 0.0 {
            return;
        }
        let speed = row.speed[kind.index()];
        if let Some(change) = truths.learn(class.index(), kind.index(), (truth.pace, truth.factor_then)) {
            self.cluster.believe_speed(class, kind, speed * change);
        }
    }
}

#[cfg(test)]
#[path = "true_pace_tests.rs"]
mod tests;
