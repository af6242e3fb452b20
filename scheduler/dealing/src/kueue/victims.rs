//! Which admitted workloads have to go for one that does not fit.
//!
//! # Source
//! `pkg/scheduler/preemption` of Kueue 0.17.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::config::Policy;
use super::state::State;
use super::workload::Workload;

impl State {
    /// The workloads that have to go so that amounts fit; none where that cannot be. Already evicted ones come first.
    pub(super) fn victims(
        &mut self,
        work: &Workload,
        usage: &[(usize, i64)],
        contested: &[usize],
    ) -> Vec<u32> {
        let found = match self.config.fair_sharing {
            _ if !self.preempts => None,
            true => self.fair_victims(work, usage, contested),
            false => self.classical_victims(work, usage, contested),
        };
        found.unwrap_or_default()
    }

    /// Does something as if these workloads were gone.
    pub(super) fn without<T>(&mut self, jobs: &[u32], what: impl FnOnce(&mut State) -> T) -> T {
        jobs.iter().for_each(|job| self.lift(*job, -1));
        let found = what(self);
        jobs.iter().for_each(|job| self.lift(*job, 1));
        found
    }

    /// Takes a workload's use out of the quotas, or puts it back.
    fn lift(&mut self, job: u32, times: i64) {
        let held = &self.held[&job];
        self.quotas.count(held.work.queue, &held.usage, times);
    }

    /// The workloads of a queue that another one may preempt: evicted ones first, then low priority, latest admission. Those of other
    /// queues only where these use more than is theirs.
    fn candidates(&self, work: &Workload, queue: usize, contested: &[usize]) -> Vec<u32> {
        let preemption = &self.config.cluster_queues[work.queue].preemption;
        let is_own = queue == work.queue;
        let policy = match is_own {
            true => preemption.within_cluster_queue,
            false if self.quotas.is_within(queue, contested) => Policy::Never,
            false => preemption.reclaim_within_cohort,
        };
        let may = |other: &Workload| match policy {
            Policy::Never => false,
            Policy::Any => true,
            Policy::LowerPriority => other.priority < work.priority,
            Policy::LowerOrNewerEqualPriority => {
                (other.priority, Reverse(other.created_s)) < (work.priority, Reverse(work.created_s))
            }
        };
        let all = self.held.iter().filter(|(_, held)| {
            let uses = held.usage.iter().any(|(place, _)| contested.contains(place));
            held.work.queue == queue && uses && may(&held.work)
        });
        all.map(|(job, _)| *job).collect()
    }

    fn key(&self, queue: usize, job: u32) -> (bool, bool, i64, Reverse<i64>, u64) {
        let held = &self.held[&job];
        let work = &held.work;
        let since = Reverse(held.since_s);
        (!held.evicted, work.queue == queue, work.priority, since, work.uid)
    }

    fn classical_victims(
        &mut self,
        work: &Workload,
        usage: &[(usize, i64)],
        contested: &[usize],
    ) -> Option<Vec<u32>> {
        let queue = work.queue;
        let mut all: Vec<u32> = Vec::new();
        for other in self.quotas.sharing(queue) {
            all.extend(self.candidates(work, other, contested));
        }
        all.sort_by_key(|job| self.key(queue, *job));
        let while_borrowing = self.config.cluster_queues[queue].preemption.borrow_within_cohort;
        let may_borrow = while_borrowing.policy != Policy::Never;
        // What is within the queue's own quota is its right; what is beyond goes by priority.
        let is_entitled = !usage.iter().any(|amount| self.quotas.borrows(queue, *amount));
        let is_under = contested
            .iter()
            .all(|place| !self.quotas.borrows(queue, (*place, 1)));
        let is_alone = all.iter().all(|job| self.held[job].work.queue == queue);
        let attempts: &[bool] = match () {
            () if is_alone || !(may_borrow || is_under) => &[true],
            () if !may_borrow && !is_entitled => &[false, true],
            () => &[true, false],
        };
        attempts.iter().find_map(|borrowing| {
            let mut gone = Vec::new();
            let mut is_enough = false;
            for job in &all {
                let of = &self.held[job].work;
                let is_low = of.priority < work.priority
                    && while_borrowing
                        .max_priority_threshold
                        .is_none_or(|most| of.priority <= most);
                let is_free = is_entitled || !borrowing || (may_borrow && is_low);
                if of.queue != queue && (!is_free || self.quotas.is_within(of.queue, contested)) {
                    continue;
                }
                self.lift(*job, -1);
                gone.push(*job);
                is_enough = self.quotas.fits(queue, usage, *borrowing);
                if is_enough {
                    break;
                }
            }
            self.put_back(gone, is_enough, |state| {
                state.quotas.fits(queue, usage, *borrowing)
            })
        })
    }

    /// Puts back, latest first, what need not go, then all; none where it was not enough.
    fn put_back(
        &mut self,
        mut gone: Vec<u32>,
        is_enough: bool,
        fits: impl Fn(&State) -> bool,
    ) -> Option<Vec<u32>> {
        for number in (1..gone.len()).rev().filter(|_| is_enough) {
            let job = gone[number - 1];
            self.lift(job, 1);
            match fits(self) {
                true => drop(gone.remove(number - 1)),
                false => self.lift(job, -1),
            }
        }
        gone.iter().for_each(|job| self.lift(*job, 1));
        is_enough.then_some(gone)
    }

    /// Fair sharing's: of the queue with the largest share first, while the share of this one stays at or below what is left of
    /// its; where that is not enough, one more of each queue whose share is larger.
    fn fair_victims(
        &mut self,
        work: &Workload,
        usage: &[(usize, i64)],
        contested: &[usize],
    ) -> Option<Vec<u32>> {
        let queue = work.queue;
        let mut lists: BTreeMap<usize, VecDeque<u32>> = BTreeMap::new();
        for other in self.quotas.sharing(queue) {
            let mut jobs = self.candidates(work, other, contested);
            jobs.sort_by_key(|job| self.key(queue, *job));
            lists.insert(other, jobs.into());
        }
        self.quotas.count(queue, usage, 1);
        let is_entitled = self.quotas.is_within(queue, contested);
        let (mut gone, mut spared) = (Vec::new(), BTreeMap::new());
        let mut is_enough = false;
        for is_first in [true, false] {
            while let Some(target) = self.largest(queue, &mut lists).filter(|_| !is_enough) {
                let (mine, theirs) = (self.quotas.share(queue), self.quotas.share(target));
                while let Some(job) = lists.get_mut(&target).and_then(VecDeque::pop_front) {
                    self.lift(job, -1);
                    let is_less = match is_first {
                        true => mine.cmp(&self.quotas.share(target)).is_le(),
                        false => mine.cmp(&theirs).is_lt(),
                    };
                    if target == queue || is_entitled || is_less {
                        gone.push(job);
                        self.quotas.count(queue, usage, -1);
                        is_enough = self.quotas.fits(queue, usage, true);
                        self.quotas.count(queue, usage, 1);
                        break;
                    }
                    self.lift(job, 1);
                    spared.entry(target).or_insert_with(VecDeque::new).push_back(job);
                }
                if !is_first {
                    lists.remove(&target);
                }
            }
            lists = std::mem::take(&mut spared);
        }
        self.quotas.count(queue, usage, -1);
        self.put_back(gone, is_enough, |state| state.quotas.fits(queue, usage, true))
    }

    /// The queue with the largest share that borrows and has a workload to give; a queue's own need not borrow.
    fn largest(&self, queue: usize, lists: &mut BTreeMap<usize, VecDeque<u32>>) -> Option<usize> {
        let is_borrowing = |other: usize| {
            (0..self.quotas.queues[other].usage.len()).any(|place| self.quotas.borrows(other, (place, 0)))
        };
        lists.retain(|other, jobs| !jobs.is_empty() && (*other == queue || is_borrowing(*other)));
        let all = lists.iter().map(|(other, jobs)| {
            (
                *other,
                self.quotas.share(*other),
                Reverse(self.key(queue, jobs[0])),
            )
        });
        all.max_by(|one, two| one.1.cmp(&two.1).then(one.2.cmp(&two.2)))
            .map(|(other, ..)| other)
    }
}
