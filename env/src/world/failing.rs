//! What goes wrong: trials that fail, jobs that are killed or given up, nodes that leave and return.

use pleach_scheduler::{JobId, Problem};

use super::World;
use super::kept::KeptPlaces;
use super::truth::Truth;
use crate::availability::{Availability, AvailabilityConfig, NodeChange};
use crate::failures::reasons::runtime_to_failure;
use crate::failures::{End, OutcomeModel};
use pleach_tables::schedule::Ended;
use pleach_workloads::Seed;

impl World {
    /// Lets jobs fail, be retried, be killed and be given up by a model of how jobs end. Call it before the first event.
    ///
    /// # Errors
    /// Shares out of their ranges.
    pub(crate) fn set_outcomes(&mut self, model: &OutcomeModel, seed: Seed) -> Result<(), Problem> {
        model.validate()?;
        self.outcome_seed = seed;
        let size = |truth: &Truth| (truth.submission.num_gpus, truth.work_s);
        let fates = model.fates(seed, &self.truth.iter().map(size).collect::<Vec<_>>());
        for (truth, fate) in self.truth.iter_mut().zip(fates) {
            if let End::Killed(part) | End::Failed(part) = fate.end {
                truth.rest_s *= part;
                truth.work_s = truth.rest_s;
                truth.isolated_s *= part;
            }
            truth.fate = Some(fate);
        }
        for number in 0..self.truth.len() {
            self.next_trial(JobId(number as u32));
        }
        Ok(())
    }

    /// Draws when the present trial of a job fails, if it is to fail.
    pub(super) fn next_trial(&mut self, id: JobId) {
        let number = u64::from(self.number_of(id));
        let truth = &mut self.truth[id.index()];
        let reason = truth.fate.and_then(|fate| fate.reason);
        truth.to_failure_s = match reason {
            Some(reason) if truth.trial_is_to_fail() => {
                let trial = truth.num_failed_trials;
                runtime_to_failure(self.outcome_seed, number, trial, reason).as_secs_f64()
            }
            _ => f64::INFINITY,
        };
    }

    /// The present trial of a running job fails: it is tried again from its last checkpoint, or given up.
    pub(super) fn trial_fails(&mut self, id: JobId) {
        let truth = &mut self.truth[id.index()];
        truth.num_failed_trials += 1;
        if truth.is_given_up() {
            self.finish(id);
            return;
        }
        self.cluster.fail(id);
        self.failed(id, Ended::AttemptFailed);
        self.next_trial(id);
    }

    /// Lets nodes come and go. Call it before the first event.
    ///
    /// # Errors
    /// Settings out of their ranges, a node that does not exist, planned changes after which a job could never run, failures so often
    /// that jobs would not come to their end.
    pub fn set_capacity(&mut self, config: &AvailabilityConfig, seed: Seed) -> Result<(), Problem> {
        self.capacity = Availability::new(config, seed, self.cluster.nodes().len())?;
        (self.site, self.incident_seed) = (config.site, seed.child("incidents", 0));
        self.kept = KeptPlaces::new(config.keep_places_s);
        let requests = self.truth.iter().map(|truth| &truth.submission);
        self.capacity.check_all_can_run(&self.cluster, requests)?;
        self.check_failures(config)
    }

    /// A failure took the job's GPUs: what its last checkpoint does not hold is lost.
    pub(super) fn failed(&mut self, id: JobId, ended: Ended) {
        let added_s = self.stopped(id);
        let truth = &mut self.truth[id.index()];
        let done_s = truth.done_s();
        let class = truth.submission.class;
        let kept_s = self.cluster.kept_at_failure_s(class, done_s, truth.saved_s);
        truth.lose(kept_s);
        self.told_ended(id, ended, done_s - kept_s + added_s);
        self.requeued(id);
        self.requeued_behind(id, &[]);
    }

    /// A node changes its state; jobs on one that goes down fail.
    pub(super) fn change_capacity(&mut self, change: NodeChange) {
        let mut stopped = std::mem::take(&mut self.touched);
        stopped.clear();
        let keeping = self.before_change(change);
        self.cluster
            .set_node_state(change.node, change.state, &mut stopped);
        for id in &stopped {
            self.failed(*id, Ended::NodeFailed);
            if change.is_failure {
                self.needs_human(*id);
            }
        }
        self.touched = stopped;
        self.keep_places(keeping);
        self.drop_the_ended();
        self.follow_rates();
    }
}
