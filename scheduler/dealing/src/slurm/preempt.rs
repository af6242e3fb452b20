//! Preemption by quality of service or partition: which running jobs are requeued for one that would not fit beside them.
//!
//! # Source
//! `plugins/preempt` and `select/cons_tres` of Slurm 22.05, and a recorded list with the jobs that it requeued. Jobs of `PreemptMode`
//! `REQUEUE` or `CANCEL` go, without a time of grace; `SUSPEND` and `GANG` are not here.

use std::cmp::Reverse;

use super::nodes::{NodeSet, Nodes};
use super::schedule::{State, Waiting};

/// How often the order of those that may go is made anew (`preempt_reorder_count`).
const REORDERS: usize = 1;

/// Nodes of a job, and the places of running jobs that go for it.
pub(super) type Room = (Vec<usize>, Vec<usize>);

impl State {
    /// The running jobs that may go for one, those first that go first.
    fn preemptable(&self, job: &Waiting) -> Vec<usize> {
        let preempts = self
            .groups
            .get(job.group)
            .map_or(&[][..], |group| &group.preempts);
        let mut found: Vec<usize> = (0..self.running.len())
            .filter(|place| preempts.contains(&self.running[*place].group))
            .collect();
        found.sort_by_key(|place| {
            let job = &self.running[*place];
            (self.groups[job.group].rank, job.on.len(), job.job)
        });
        found
    }

    /// The nodes that a job gets now, and the jobs that go for that.
    pub(super) fn room(&self, job: &Waiting, among: &NodeSet) -> Option<Room> {
        if let Some(on) = self.nodes.choose(&job.ask, among) {
            return Some((on, Vec::new()));
        }
        let mut order = self.preemptable(job);
        for pass in 0.. {
            let mut then = self.nodes.clone();
            let fits = |place: &usize| {
                self.give_back(&mut then, *place);
                then.choose(&job.ask, among)
            };
            let (last, on) = order
                .iter()
                .map(fits)
                .enumerate()
                .find_map(|(at, on)| Some((at, on?)))?;
            let overlap = |place: &usize| {
                self.running[*place]
                    .on
                    .iter()
                    .filter(|node| on.contains(node))
                    .count()
            };
            if pass > REORDERS || order.len() <= pass + 1 {
                let gone = order[..=last].iter().copied().filter(|place| overlap(place) > 0);
                return Some((on.clone(), gone.collect()));
            }
            // The job that made room goes first, then those with most of the chosen nodes.
            let (before, behind) = order.split_at(last);
            let mut next = vec![behind[0]];
            next.extend(before);
            next[1..].sort_by_key(|place| Reverse(overlap(place)));
            next.extend(&behind[1..]);
            order = next;
        }
        None
    }

    /// The nodes without all jobs that may go for a job; none where no job may.
    pub(super) fn without(&self, job: &Waiting) -> Option<(Nodes, Vec<usize>)> {
        let gone = self.preemptable(job);
        let mut then = self.nodes.clone();
        gone.iter().for_each(|place| self.give_back(&mut then, *place));
        (!gone.is_empty()).then_some((then, gone))
    }

    fn give_back(&self, nodes: &mut Nodes, place: usize) {
        let running = &self.running[place];
        nodes.give_back(&running.ask, &running.on);
    }

    /// Takes running jobs away; their numbers.
    pub(super) fn preempt(&mut self, mut places: Vec<usize>) -> Vec<u32> {
        places.sort_unstable();
        let mut stopped = Vec::new();
        for place in places.into_iter().rev() {
            let running = self.running.remove(place);
            self.nodes.give_back(&running.ask, &running.on);
            self.usage.take_back(&running.ask, &running.counts);
            running
                .licences
                .iter()
                .for_each(|(place, num)| self.licences[*place] += num);
            stopped.push(running.job);
        }
        stopped.reverse();
        stopped
    }
}
