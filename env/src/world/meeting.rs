//! Jobs that meet at the site's store: loads at starts, saves at stops, and checkpoints beside trainings.
//!
//! Each is counted when it begins. A load shares the store with the jobs that load then. A save at a stop meets the others that
//! are stopped in the same pass, those whose save is not over, and the running jobs that write checkpoints; of these the expected
//! number counts, the sum of the parts of the time in which each writes (*assumed*: they do so independently of each other). A
//! run that begins among them keeps that number for its checkpoints: with a naive saver it stands still the longer. So an event
//! costs the same however many jobs run; where few write, the waits are those of processor sharing, which the tests play event by
//! event.

use pleach_scheduler::decision::{Action, Decision};
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{JobId, Time};

use super::World;
use super::store::WHOLE;

impl World {
    /// Counts the jobs that load and save together because they were started and stopped together.
    pub(super) fn count_at_store(&mut self, decisions: &[Decision]) {
        if self.cluster.capabilities().overheads == Some(Overheads::ByClass) {
            let now = self.cluster.now();
            let store = &mut self.store;
            store.loads_until.retain(|until| *until > now);
            store.saves_until.retain(|until| *until > now);
            let starts = decisions
                .iter()
                .filter(|decision| decision.action == Action::Start);
            store.num_new_loads = starts
                .filter(|start| self.cluster.loads_at_start(start.row))
                .count();
            let (mut num_saves, mut writing) = (0_usize, store.writing);
            for decision in decisions.iter().filter(|each| each.action == Action::Preempt) {
                let truth = &self.truth[decision.row.index()];
                // One that hangs, or whose end or dead node is not seen yet, writes nothing.
                if truth.rate > 0.0 && self.cluster.writes_at_stop(decision.row) {
                    num_saves += 1;
                    writing -= truth.writes;
                }
            }
            let saving = store.saves_until.len() + num_saves.saturating_sub(1);
            store.beside_stops = saving as f64 + writing as f64 / WHOLE;
        }
    }

    /// How much longer the start of a job that loads takes because other jobs load, s. The store is divided among the jobs that
    /// load when this one begins. The caller then reports the load with [`World::loads_for`].
    pub(super) fn load_waits_s(&self, id: JobId) -> f64 {
        let num_loading = self.store.loads_until.len() + self.store.num_new_loads;
        self.cluster.waits_for_others_s(id, num_loading)
    }

    /// A job loads for so long from now on.
    pub(super) fn loads_for(&mut self, load_s: f64) {
        let until = self.cluster.now() + Time::from_secs_f64(load_s);
        self.store.num_new_loads = self.store.num_new_loads.saturating_sub(1);
        self.store.loads_until.push(until);
    }

    /// A job is stopped, which ran until now or stood still: what that leaves of its work, in seconds of the reference run. Of a save
    /// among others it owes the wait.
    pub(super) fn saves_at_stop(&mut self, id: JobId, ran: bool) -> f64 {
        // Every stop by a scheduler comes by here.
        self.integrals.stopped_jobs += 1.0;
        let by_class = self.cluster.capabilities().overheads == Some(Overheads::ByClass);
        let writes = by_class && ran && self.cluster.writes_at_stop(id);
        let num_writing = if writes {
            1.0 + self.store.beside_stops
        } else {
            1.0
        };
        if writes {
            let (save_s, waits_s) = self.cluster.save_at_stop_s(id, num_writing);
            let until = self.cluster.now() + Time::from_secs_f64(save_s);
            self.store.saves_until.push(until);
            self.truth[id.index()].save_waits_s = waits_s;
        }
        let truth = &self.truth[id.index()];
        self.cluster
            .kept_at_stop_s(id, truth.done_s(), truth.saved_s, num_writing)
    }

    /// A run begins that writes checkpoints from time to time: the part of its rate that it keeps beside the other writers.
    pub(super) fn begins_to_write(&mut self, id: JobId, rate: f64) -> f64 {
        let others = self.store.writing as f64 / WHOLE;
        let (kept, writes) = self.cluster.among_writers(id, rate, 1.0 + others);
        let writes = (writes * WHOLE).round() as u64;
        self.truth[id.index()].writes = writes;
        self.store.writing += writes;
        kept
    }

    /// A run is over.
    pub(super) fn writes_no_more(&mut self, id: JobId) {
        let writes = std::mem::take(&mut self.truth[id.index()].writes);
        self.store.writing -= writes;
    }
}

#[cfg(test)]
#[path = "meeting_tests.rs"]
mod tests;
