//! The world behind a batch system: decisions at ticks, jobs that begin later than they were let go, ends and failures that come
//! into sight later than they happen. Its settings and their sources: [`crate::batch_system`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pleach_scheduler::cluster::{JobState, NodeState, Sharing, Slice};
use pleach_scheduler::{ActionKind, JobId, Problem, Time};

use super::World;
use super::delays::Batch;
use super::truth::Unseen;
use crate::availability::NodeChange;
use crate::batch_system::BatchSystem;

impl World {
    /// Puts a batch system between the scheduler and its cluster. Call it before the first event.
    ///
    /// # Errors
    /// A time out of its range; a cluster that puts whole-GPU jobs beside each other or mixes GPU types.
    pub fn set_batch_system(&mut self, config: &BatchSystem) -> Result<(), Problem> {
        config.validate()?;
        let capabilities = self.cluster.capabilities();
        Problem::refuse_if(
            capabilities.sharing != Sharing::Off || capabilities.can(ActionKind::MixTypes),
            "batch_system",
            format_args!("a cluster with sharing or mixed types: {capabilities:?}"),
            "clusters whose whole-GPU jobs have their GPUs alone, on one GPU type",
            "leave out sharing and mixed types: a batch system fixes what a job gets when it is submitted",
        )?;
        let tick = Time::from_secs_f64(config.tick_s);
        let num_nodes = self.cluster.nodes().len();
        self.batch = Some(Box::new(Batch {
            tick: Some(tick).filter(|tick| *tick > Time::ZERO),
            start: Time::from_secs_f64(config.start_delay_s),
            end: Time::from_secs_f64(config.end_delay_s),
            requeue: Time::from_secs_f64(config.requeue_delay_s),
            failure: Time::from_secs_f64(config.failure_delay_s),
            is_news: false,
            failures: BinaryHeap::new(),
            unseen: vec![None; num_nodes],
            nodes_from: vec![Time::ZERO; num_nodes],
            gone: Vec::with_capacity(self.truth.len().min(64)),
        }));
        Ok(())
    }

    /// Whether the scheduler may decide now: always, but between the ticks of a batch system.
    #[must_use]
    pub fn may_decide(&self) -> bool {
        let tick = self.batch.as_ref().and_then(|batch| batch.tick);
        tick.is_none_or(|tick| self.cluster.now().0 % tick.0 == 0)
    }

    /// What a batch system will do next of its own accord.
    pub(super) fn batch_event(&self) -> Option<Time> {
        let batch = self.batch.as_ref()?;
        let now = self.cluster.now();
        let tick = batch.tick.filter(|_| batch.is_news && !self.is_over());
        let tick = tick.map(|tick| now.next_multiple(tick));
        let failure = batch.failures.peek().map(|Reverse((time, _))| *time);
        let failure = failure.filter(|_| !self.is_over());
        [tick, failure].into_iter().flatten().min()
    }

    /// Something happened: the scheduler is to look at the next tick, if it does not now.
    pub(super) fn note_event(&mut self) {
        let may_decide = self.may_decide();
        if let Some(batch) = &mut self.batch {
            batch.is_news = !may_decide;
        }
    }

    /// A job was let go: when it begins. False if it never will, because a node of its is dead.
    pub(super) fn begins(&mut self, id: JobId) -> bool {
        let Some(batch) = &self.batch else {
            return true;
        };
        let now = self.cluster.now();
        let job = self.cluster.job(id);
        let mut from = now + batch.start;
        if job.num_preemptions + job.num_failures > 0 {
            from = from + batch.requeue;
        }
        let mut is_dead = false;
        for slice in &job.placement {
            from = from.max(batch.nodes_from[slice.node.index()]);
            is_dead |= batch.unseen[slice.node.index()].is_some();
        }
        let truth = &mut self.truth[id.index()];
        truth.cost_left_s += (from - now).as_secs_f64();
        truth.first_begin.get_or_insert(from);
        if is_dead {
            truth.rate = 0.0;
        }
        !is_dead
    }

    /// A run is over. True if the scheduler is to see it later.
    pub(super) fn ends_unseen(&mut self, id: JobId) -> bool {
        let delay = self.batch.as_ref().map(|batch| batch.end);
        let Some(delay) = delay.filter(|delay| *delay > Time::ZERO) else {
            return false;
        };
        let now = self.cluster.now();
        let truth = &mut self.truth[id.index()];
        if let Some(end) = truth.unseen {
            // It is seen now.
            if end.fails {
                truth.unseen = Some(end).filter(|end| end.leaves);
                self.trial_fails(id);
            } else {
                self.finish(id);
            }
            return true;
        }
        let fails = truth.ends_in_failure();
        self.book(id);
        let truth = &mut self.truth[id.index()];
        truth.rate = 0.0;
        let leaves = !fails || truth.is_given_up_next();
        truth.unseen = Some(Unseen {
            at: now,
            fails,
            leaves,
        });
        let seen = (now + delay, id, truth.run);
        self.finishes.push(Reverse(seen));
        if leaves {
            self.leave(id);
        }
        true
    }

    /// A job lost its GPUs, which take their time to be free. One that has left already is not requeued.
    pub(super) fn requeued_behind(&mut self, id: JobId, placement: &[Slice]) {
        let now = self.cluster.now();
        let Some(batch) = &mut self.batch else { return };
        for slice in placement {
            let node = &mut batch.nodes_from[slice.node.index()];
            *node = (now + batch.end).max(*node);
        }
        let truth = &mut self.truth[id.index()];
        match truth.unseen {
            Some(end) if end.leaves => batch.gone.push(id),
            Some(_) => {
                truth.unseen = None;
                truth.num_failed_trials += 1;
                self.next_trial(id);
            }
            None => {}
        }
    }

    /// Takes the jobs out of the tables that had left when they were stopped.
    pub(super) fn drop_the_ended(&mut self) {
        while let Some(id) = self.batch.as_mut().and_then(|batch| batch.gone.pop()) {
            if self.cluster.job(id).state == JobState::Running {
                // Let go again in the same pass.
                self.finish(id);
                continue;
            }
            let now = self.cluster.now();
            if let Some(account) = &mut self.attribution {
                account.left(now, id);
            }
            self.cluster.withdraw(id);
            self.record(id);
        }
    }

    /// A node changes its state. True if the scheduler is to see it later.
    pub(super) fn fails_unseen(&mut self, change: NodeChange) -> bool {
        let now = self.cluster.now();
        let Some(batch) = &mut self.batch else {
            return false;
        };
        let unseen = &mut batch.unseen[change.node.index()];
        if unseen.take().is_some() {
            // It comes back, or is taken away: its batch system then knows what became of its jobs.
            let down = NodeChange {
                state: NodeState::Down,
                ..change
            };
            self.change_capacity(down);
            return false;
        }
        let is_down = self.cluster.nodes()[change.node.index()].state == NodeState::Down;
        if !change.is_failure || is_down || batch.failure == Time::ZERO {
            return false;
        }
        let seen = now + batch.failure;
        *unseen = Some(seen);
        batch.failures.push(Reverse((seen, change.node)));
        let mut jobs = std::mem::take(&mut self.touched);
        jobs.clear();
        self.cluster.jobs_of(change.node, &mut jobs);
        for id in &jobs {
            if self.truth[id.index()].unseen.is_none() {
                self.book(*id);
                let truth = &mut self.truth[id.index()];
                truth.rate = 0.0;
                truth.run += 1;
            }
        }
        self.touched = jobs;
        true
    }

    /// Failures of nodes come into sight.
    pub(super) fn see_failures(&mut self) {
        let now = self.cluster.now();
        while let Some(batch) = &mut self.batch {
            let due = batch.failures.peek().filter(|Reverse((time, _))| *time <= now);
            let Some(Reverse((time, node))) = due.copied() else {
                return;
            };
            batch.failures.pop();
            let unseen = &mut batch.unseen[node.index()];
            if *unseen == Some(time) {
                *unseen = None;
                let state = NodeState::Down;
                let is_failure = true;
                self.change_capacity(NodeChange {
                    node,
                    state,
                    is_failure,
                });
            }
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
