//! Which admitted workloads have to go for one that does not fit.
//!
//! # Source
//! `pkg/scheduler/preemption` of Kueue 0.17.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::config::Policy;
use super::quota::{Amounts, Share};
use super::state::{State, Workload};

/// What a workload that might have to go is to the one that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// In the same ClusterQueue.
    Own,
    /// It uses quota to which the other is nearer, or priorities decide and it may borrow.
    Reclaim,
    /// Only where the other would not borrow.
    WithoutBorrowing,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    job: u32,
    way: Way,
    /// The lowest cohort of both.
    common: Option<usize>,
}

impl State {
    /// The workloads that have to go so that amounts fit; none where that cannot be. Already evicted ones come first.
    pub(super) fn victims(
        &mut self,
        work: &Workload,
        usage: &[(usize, i64)],
        contested: &[usize],
    ) -> Vec<u32> {
        match self.config.fair_sharing {
            _ if !self.preempts => Vec::new(),
            true => self.fair_victims(work, usage, contested),
            false => self.classical_victims(work, usage, contested),
        }
    }

    /// Does something as if these workloads were gone.
    pub(super) fn without<T>(&mut self, jobs: &[u32], what: impl FnOnce(&mut State) -> T) -> T {
        jobs.iter().for_each(|job| self.lift(*job));
        let found = what(self);
        jobs.iter().for_each(|job| self.lay(*job));
        found
    }

    /// Takes a workload's use out of the tree, or puts it back.
    fn lift(&mut self, job: u32) {
        let held = &self.held[&job];
        self.tree.remove(held.work.queue, &held.usage);
    }

    fn lay(&mut self, job: u32) {
        let held = &self.held[&job];
        self.tree.add(held.work.queue, &held.usage);
    }

    /// Whether a policy lets one workload preempt another.
    fn may(&self, policy: Policy, work: &Workload, job: u32, contested: &[usize]) -> bool {
        let held = &self.held[&job];
        let other = &held.work;
        let allowed = match policy {
            Policy::Never => false,
            Policy::Any => true,
            Policy::LowerPriority => other.priority < work.priority,
            Policy::LowerOrNewerEqualPriority => {
                other.priority < work.priority
                    || (other.priority == work.priority && work.created_s < other.created_s)
            }
        };
        allowed && held.usage.iter().any(|(place, _)| contested.contains(place))
    }

    /// Evicted ones first, then other queues, low priority, latest admission.
    fn key(&self, queue: usize, job: u32) -> (bool, bool, i64, Reverse<i64>, u64) {
        let held = &self.held[&job];
        let work = &held.work;
        let since = Reverse(held.since_s);
        (!held.evicted, work.queue == queue, work.priority, since, work.uid)
    }

    fn of_queue(&self, queue: usize) -> impl Iterator<Item = u32> + '_ {
        let of = self.held.iter().filter(move |(_, held)| held.work.queue == queue);
        of.map(|(job, _)| *job)
    }

    fn classical_victims(
        &mut self,
        work: &Workload,
        usage: &[(usize, i64)],
        contested: &[usize],
    ) -> Vec<u32> {
        let queue = work.queue;
        let preemption = self.config.cluster_queues[queue].preemption;
        let (nearer, others) = self.of_cohort(work, usage, contested);
        let own = self
            .of_queue(queue)
            .filter(|job| self.may(preemption.within_cluster_queue, work, *job, contested));
        let own = own.map(|job| Candidate {
            job,
            way: Way::Own,
            common: None,
        });
        let (is_alone, is_far) = (nearer.is_empty() && others.is_empty(), nearer.is_empty());
        let mut all = Vec::new();
        for mut list in [nearer, others, own.collect()] {
            list.sort_by_key(|candidate| self.key(queue, candidate.job));
            all.extend(list);
        }
        all.sort_by_key(|candidate| !self.held[&candidate.job].evicted);
        let is_forbidden = preemption.borrow_within_cohort.policy == Policy::Never;
        let is_under = contested
            .iter()
            .all(|place| self.tree.usage(queue, *place) < self.tree.quota(queue, *place).nominal);
        let attempts: &[bool] = match () {
            () if is_alone || (is_forbidden && !is_under) => &[true],
            () if is_forbidden && is_far => &[false, true],
            () => &[true, false],
        };
        for borrowing in attempts {
            let mut gone = Vec::new();
            let mut is_enough = false;
            for candidate in &all {
                if !self.is_valid(candidate, queue, contested, *borrowing) {
                    continue;
                }
                self.lift(candidate.job);
                gone.push(candidate.job);
                is_enough = self.tree.fits(queue, usage, *borrowing);
                if is_enough {
                    break;
                }
            }
            if let Some(found) =
                self.put_back(gone, is_enough, |state| state.tree.fits(queue, usage, *borrowing))
            {
                return found;
            }
        }
        Vec::new()
    }

    /// Puts back, latest first, what need not go, then all; none where it was not enough.
    fn put_back(
        &mut self,
        gone: Vec<u32>,
        is_enough: bool,
        fits: impl Fn(&mut State) -> bool,
    ) -> Option<Vec<u32>> {
        let mut stay = BTreeSet::new();
        for job in gone.iter().rev().skip(1).filter(|_| is_enough) {
            self.lay(*job);
            match fits(self) {
                true => drop(stay.insert(*job)),
                false => self.lift(*job),
            }
        }
        let found: Vec<u32> = gone.into_iter().filter(|job| !stay.contains(job)).collect();
        found.iter().for_each(|job| self.lay(*job));
        is_enough.then_some(found)
    }

    /// Candidates of other queues of the cohort: those that use quota to which this queue is nearer, and those by priority.
    fn of_cohort(
        &self,
        work: &Workload,
        usage: &[(usize, i64)],
        contested: &[usize],
    ) -> (Vec<Candidate>, Vec<Candidate>) {
        let (mut lists, mut before) = ([Vec::new(), Vec::new()], None);
        let (mut is_nearer, mut rest) = self.tree.within(work.queue, usage);
        for common in self.tree.above(work.queue) {
            let mut queues = Vec::new();
            self.borrowers(common, before, contested, &mut queues);
            for queue in queues.into_iter().filter(|queue| *queue != work.queue) {
                let policy = self.config.cluster_queues[work.queue]
                    .preemption
                    .reclaim_within_cohort;
                let jobs = self
                    .of_queue(queue)
                    .filter(|job| self.may(policy, work, *job, contested));
                let candidates = jobs.map(|job| Candidate {
                    job,
                    way: self.way(work, job, is_nearer),
                    common: Some(common),
                });
                lists[usize::from(!is_nearer)].extend(candidates);
            }
            let (fits, beyond) = self.tree.within(common, &rest);
            (is_nearer, rest, before) = (is_nearer | fits, beyond, Some(common));
        }
        let [nearer, others] = lists;
        (nearer, others)
    }

    fn way(&self, work: &Workload, job: u32, is_nearer: bool) -> Way {
        let of = self.config.cluster_queues[work.queue]
            .preemption
            .borrow_within_cohort;
        let priority = self.held[&job].work.priority;
        let may_borrow = of.policy != Policy::Never
            && priority < work.priority
            && of.max_priority_threshold.is_none_or(|most| priority <= most);
        match is_nearer || may_borrow {
            true => Way::Reclaim,
            false => Way::WithoutBorrowing,
        }
    }

    /// ClusterQueues below a cohort that use more than their own, but for a part that was seen.
    fn borrowers(&self, cohort: usize, seen: Option<usize>, contested: &[usize], into: &mut Vec<usize>) {
        for child in self.tree.children(cohort) {
            match self.tree.is_within(*child, contested) || Some(*child) == seen {
                true => {}
                false if *child < self.num_queues() => into.push(*child),
                false => self.borrowers(*child, seen, contested, into),
            }
        }
    }

    fn is_valid(&self, candidate: &Candidate, queue: usize, contested: &[usize], borrowing: bool) -> bool {
        let of = self.held[&candidate.job].work.queue;
        if of == queue {
            return true;
        }
        let below = self
            .tree
            .above(of)
            .take_while(|node| Some(*node) != candidate.common);
        let mut path = std::iter::once(of).chain(below);
        !(borrowing && candidate.way == Way::WithoutBorrowing)
            && path.all(|node| !self.tree.is_within(node, contested))
    }

    /// Fair sharing's: queues with the largest share first, while the share of this one stays at or below theirs.
    fn fair_victims(&mut self, work: &Workload, usage: &[(usize, i64)], contested: &[usize]) -> Vec<u32> {
        let queue = work.queue;
        let preemption = self.config.cluster_queues[queue].preemption;
        let num_queues = self.num_queues();
        let root = self.tree.root(queue);
        let mut jobs: Vec<u32> = Vec::new();
        for other in 0..num_queues {
            let policy = match other == queue {
                true => preemption.within_cluster_queue,
                false if self.tree.root(other) != root || self.tree.is_within(other, contested) => continue,
                false => preemption.reclaim_within_cohort,
            };
            jobs.extend(
                self.of_queue(other)
                    .filter(|job| self.may(policy, work, *job, contested)),
            );
        }
        jobs.sort_by_key(|job| self.key(queue, *job));
        self.tree.add(queue, usage);
        let mut hunt = Hunt::of(self, queue, jobs);
        let mut again = Vec::new();
        let is_entitled = self.tree.is_within(queue, contested);
        let mut is_enough = false;
        while let Some(target) = hunt.next(self).filter(|_| !is_enough) {
            let (mine, _) = hunt.shares(self, target);
            while let Some(job) = hunt.pop(target) {
                self.lift(job);
                let (_, theirs) = hunt.shares(self, target);
                if target == queue || is_entitled || mine.cmp(&theirs).is_le() {
                    hunt.gone.push(job);
                    is_enough = self.fits_without(queue, usage);
                    break;
                }
                self.lay(job);
                again.push(job);
            }
        }
        let mut gone = hunt.gone;
        if !is_enough {
            // Those that the first rule spared: one of each queue, where this one's share is below what theirs was.
            let mut hunt = Hunt::of(self, queue, again);
            while let Some(target) = hunt.next(self).filter(|_| !is_enough) {
                let (mine, theirs) = hunt.shares(self, target);
                if let Some(job) = hunt.pop(target).filter(|_| mine.cmp(&theirs).is_lt()) {
                    self.lift(job);
                    gone.push(job);
                    is_enough = self.fits_without(queue, usage);
                }
                hunt.pruned.insert(target);
            }
        }
        self.tree.remove(queue, usage);
        let fits = |state: &mut State| state.tree.fits(queue, usage, true);
        self.put_back(gone, is_enough, fits).unwrap_or_default()
    }

    /// Whether amounts that are counted already would fit.
    fn fits_without(&mut self, queue: usize, usage: &[(usize, i64)]) -> bool {
        self.tree.remove(queue, usage);
        let fits = self.tree.fits(queue, usage, true);
        self.tree.add(queue, usage);
        fits
    }
}

/// Goes through the ClusterQueues that use more than is theirs, the largest share first.
struct Hunt {
    queue: usize,
    jobs: BTreeMap<usize, VecDeque<u32>>,
    pruned: BTreeSet<usize>,
    gone: Vec<u32>,
}

impl Hunt {
    fn of(state: &State, queue: usize, all: Vec<u32>) -> Hunt {
        let mut jobs: BTreeMap<usize, VecDeque<u32>> = BTreeMap::new();
        for job in all {
            jobs.entry(state.held[&job].work.queue)
                .or_default()
                .push_back(job);
        }
        Hunt {
            queue,
            jobs,
            pruned: BTreeSet::new(),
            gone: Vec::new(),
        }
    }

    fn pop(&mut self, queue: usize) -> Option<u32> {
        self.jobs.get_mut(&queue)?.pop_front()
    }

    fn first(&self, queue: usize) -> Option<u32> {
        self.jobs.get(&queue)?.front().copied()
    }

    /// The shares of the two queues' branches below their lowest common cohort.
    fn shares(&self, state: &State, target: usize) -> (Share, Share) {
        let common = state
            .tree
            .above(target)
            .find(|node| state.tree.above(self.queue).any(|own| own == *node));
        let branch = |queue: usize| {
            let path = std::iter::once(queue).chain(state.tree.above(queue));
            path.take_while(|node| Some(*node) != common)
                .last()
                .unwrap_or(queue)
        };
        (
            state.tree.share(branch(self.queue)),
            state.tree.share(branch(target)),
        )
    }

    /// The next queue that has a workload to give.
    fn next(&mut self, state: &State) -> Option<usize> {
        let root = state.tree.root(self.queue);
        if root == self.queue {
            return self.first(root).map(|_| root);
        }
        while !self.pruned.contains(&root) {
            if let Some(queue) = self.below(state, root) {
                return Some(queue);
            }
        }
        None
    }

    fn below(&mut self, state: &State, cohort: usize) -> Option<usize> {
        let (mut best, mut top) = (None, Share::LOWEST);
        let (queues, cohorts): (Vec<usize>, Vec<usize>) = state
            .tree
            .children(cohort)
            .iter()
            .partition(|child| **child < state.num_queues());
        for queue in queues {
            if self.pruned.contains(&queue) {
                continue;
            }
            let share = state.tree.share(queue);
            let Some(job) = self
                .first(queue)
                .filter(|_| !share.borrowed.is_empty() || queue == self.queue)
            else {
                self.pruned.insert(queue);
                continue;
            };
            let is_first = |other: u32| state.key(self.queue, job) < state.key(self.queue, other);
            let order = share.cmp(&top);
            if order.is_gt() || (order.is_eq() && best.and_then(|of| self.first(of)).is_some_and(is_first)) {
                (best, top) = (Some(queue), share);
            }
        }
        let (mut branch, mut high) = (None, Share::LOWEST);
        for child in cohorts {
            let is_own = state.tree.above(self.queue).any(|node| node == child);
            let share = state.tree.share(child);
            if self.pruned.contains(&child) || (share.borrowed.is_empty() && !is_own) {
                self.pruned.insert(child);
            } else if share.cmp(&high).is_ge() {
                (branch, high) = (Some(child), share);
            }
        }
        match (branch, best) {
            (None, None) => {
                self.pruned.insert(cohort);
                None
            }
            (Some(branch), _) if high.cmp(&top).is_ge() => self.below(state, branch),
            (_, best) => best,
        }
    }
}

/// What a workload would hold back where it waits and cannot be sure to get its quota back.
pub(super) fn reserved(state: &State, work: &Workload, usage: &[(usize, i64)], borrows: bool) -> Amounts {
    let of = |(place, amount): &(usize, i64)| {
        let quota = state.tree.quota(work.queue, *place);
        let own = quota.nominal - state.tree.usage(work.queue, *place);
        let most = match (borrows, quota.borrowing) {
            (true, None) => *amount,
            (true, Some(limit)) => own + limit,
            (false, _) => own.max(0),
        };
        (*place, most.min(*amount))
    };
    usage.iter().map(of).collect()
}
