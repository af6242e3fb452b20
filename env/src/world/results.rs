//! What a world tells once jobs have left: their outcomes, figures over them, and the accounts that were asked for.

use std::cmp::Reverse;

use pleach_scheduler::Time;

use super::World;
use crate::attribution::Attribution;
use crate::metrics::{JobOutcome, Metrics};
use crate::occupancy::Occupancy;

impl World {
    /// What the sum of all JCTs comes to at least, s: what was spent, and the rest of each job where a second of its work takes
    /// `least_times` of a second. `[num_jobs]`
    pub(crate) fn jct_sum_s_min(&self, least_times: &[f64]) -> f64 {
        /// The clock counts whole microseconds.
        const TICK_S: f64 = 1e-6;
        let now = self.cluster.now();
        let left = |id: usize| self.outcomes[id].is_none();
        let jobs = self
            .truth
            .iter()
            .zip(least_times)
            .enumerate()
            .filter(|(id, _)| left(*id));
        let rests = jobs.map(|(_, (truth, least))| (truth.rest_s_at(now) * least - TICK_S).max(0.0));
        self.integrals.jobs_s + rests.sum::<f64>()
    }

    /// Outcomes of the jobs that have left, in order of submission.
    pub fn outcomes(&self) -> impl Iterator<Item = &JobOutcome> {
        self.outcomes.iter().flatten()
    }

    /// Jobs that have come and jobs that have left, together.
    pub(crate) fn num_comings_and_goings(&self) -> usize {
        self.next_arrival + self.num_left
    }

    /// When a job next comes, ends or fails by itself, as far as is known now.
    pub(crate) fn next_of_jobs(&mut self) -> Option<Time> {
        self.drop_stale();
        let finish = self.finishes.peek().map(|Reverse((time, ..))| *time);
        let arrival = self.truth.get(self.next_arrival).map(|truth| truth.submit);
        finish.into_iter().chain(arrival).min()
    }

    /// Figures over the jobs that have left.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let jobs: Vec<JobOutcome> = self.outcomes().copied().collect();
        Metrics::of(&jobs, self.cluster.num_gpus())
    }

    /// Takes the utilisation series: (time s, held GPUs) at every change.
    pub(crate) fn take_utilisation(&mut self) -> Vec<(f64, f64)> {
        self.utilisation.take().unwrap_or_default()
    }

    /// The account of waiting times, where one was asked for.
    #[must_use]
    pub fn attribution(&self) -> Option<&Attribution> {
        self.attribution.as_deref()
    }

    /// Takes the account of how the cluster was filled, where one was asked for.
    pub fn take_occupancy(&mut self) -> Option<Occupancy> {
        self.occupancy.take().map(|account| *account)
    }
}
