//! What decisions have cost so far and are sure to cost: exact credit for each.

use pleach_scheduler::{JobId, Time};

use super::World;

impl World {
    /// When the next event is; none where nothing will ever happen again.
    pub(crate) fn next_event(&mut self) -> Option<Time> {
        self.drop_stale();
        let now = self.cluster.now();
        // Ticks matter only while jobs wait and something runs; otherwise nothing can change between events.
        let tick = self
            .tick
            .filter(|_| self.cluster.num_pending() > 0 && self.cluster.num_running() > 0);
        let events = [
            self.next_of_jobs(),
            tick.map(|tick| now.next_multiple(tick)),
            self.wake.filter(|wake| *wake > now),
            // Once all jobs have left, it does not matter what becomes of the nodes.
            self.capacity.next().filter(|_| !self.is_over()),
            self.round_end(),
            self.batch_event(),
            self.kept.next_end(),
            self.held.peek().map(|held| held.0.0),
        ];
        events.into_iter().flatten().min()
    }

    /// Run time beyond what the same work takes alone at the best speed of its class, summed over the jobs that have come, s. That
    /// of a run counts as a whole from its start, at its present rate; a stop takes back what it had still to come.
    ///
    /// With [`Integrals::waiting_s`](super::Integrals::waiting_s) it is the sum of all JCTs less that of the isolated run times, once
    /// all jobs have left: what no decision changes is all that lies between.
    #[must_use]
    pub fn excess_run_s(&self) -> f64 {
        let waiting = self.cluster.pending().filter(|id| self.truth[id.index()].run > 0);
        let jobs = self.cluster.running().chain(waiting);
        let rest: f64 = jobs.map(|id| self.rest_beyond_best_s(id)).sum();
        self.integrals.jobs_s - self.integrals.waiting_s - self.best_left_s + rest
    }

    /// What the present run has still to take, less the best run time of all work that is done or that it will do, s.
    fn rest_beyond_best_s(&self, id: JobId) -> f64 {
        let truth = &self.truth[id.index()];
        if self.cluster.job(id).is_lease || truth.unseen.is_some_and(|end| end.leaves) {
            return 0.0;
        }
        if truth.rate > 0.0 {
            let elapsed_s = (self.cluster.now() - truth.since).as_secs_f64();
            return truth.rest_span_s() - elapsed_s - truth.isolated_s;
        }
        -truth.isolated_s * truth.done_s() / truth.work_s.max(f64::MIN_POSITIVE)
    }

    /// What has been paid and committed, s: jobs have waited, and runs that have begun take longer than the best possible.
    #[must_use]
    pub fn committed_s(&self) -> f64 {
        self.integrals.waiting_s + self.excess_run_s()
    }
}
