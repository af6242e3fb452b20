//! Quotas of ClusterQueues that share a cohort: what is used, what is borrowed and what is still to be had.
//!
//! Amounts are of a flavour and a resource, a *place* in a list of all pairs. What a lending limit keeps back is a queue's alone;
//! all else is common to its cohort, with the cohort's own quota.
//!
//! # Source
//! `pkg/cache/scheduler/resource_node.go` and `fair_sharing.go` of Kueue 0.17, for cohorts of one level.

use std::cmp::Ordering;

/// Resources that are counted: GPUs, CPU and host memory.
pub(super) const RESOURCES: usize = 3;

/// Amounts by place, each above 0.
pub(super) type Amounts = Vec<(usize, i64)>;

/// What a ClusterQueue has of a flavour's resource.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quota {
    pub(super) nominal: i64,
    /// Most that it borrows, and most that it lends; none: all that there is.
    pub(super) borrowing: Option<i64>,
    pub(super) lending: Option<i64>,
}

/// A ClusterQueue.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) cohort: Option<usize>,
    pub(super) quotas: Vec<Quota>,
    pub(super) usage: Vec<i64>,
    pub(super) weight: f64,
}

/// What a queue uses beyond its quota, of what may be lent (its dominant resource share): whether it has no weight, and the share
/// by its weight.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Share(bool, f64);

impl Share {
    pub(super) fn cmp(&self, other: &Share) -> Ordering {
        self.0.cmp(&other.0).then(self.1.total_cmp(&other.1))
    }
}

/// All ClusterQueues, and what cohorts have beside theirs.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    pub(super) queues: Vec<Member>,
    pub(super) cohorts: Vec<Vec<i64>>,
}

impl Quotas {
    /// What is a queue's alone.
    fn local(&self, queue: &Member, place: usize) -> i64 {
        let Quota { nominal, lending, .. } = queue.quotas[place];
        lending.map_or(0, |limit| (nominal - limit).max(0))
    }

    /// The queues that share a queue's cohort, itself among them.
    pub(super) fn sharing(&self, queue: usize) -> impl Iterator<Item = usize> + '_ {
        let cohort = self.queues[queue].cohort;
        (0..self.queues.len()).filter(move |other| {
            *other == queue || (cohort.is_some() && self.queues[*other].cohort == cohort)
        })
    }

    /// What is common to a cohort in all, and what of it is used.
    fn common(&self, cohort: usize, place: usize) -> (i64, i64) {
        let members = self.queues.iter().filter(|of| of.cohort == Some(cohort));
        members.fold((self.cohorts[cohort][place], 0), |(all, used), of| {
            let local = self.local(of, place);
            (
                all + of.quotas[place].nominal - local,
                used + (of.usage[place] - local).max(0),
            )
        })
    }

    /// What a queue could take if nothing were used, and what it may take now, borrowed or not.
    pub(super) fn most_and_left(&self, queue: usize, place: usize) -> (i64, i64) {
        let of = &self.queues[queue];
        let (nominal, usage) = (of.quotas[place].nominal, of.usage[place]);
        let Some(cohort) = of.cohort else {
            return (nominal, nominal - usage);
        };
        let (all, used) = self.common(cohort, place);
        let local = self.local(of, place);
        let limit = of.quotas[place]
            .borrowing
            .map_or(i64::MAX, |limit| nominal + limit);
        let left = (local - usage).max(0) + (all - used).min(limit.saturating_sub(local.max(usage)));
        ((local + all).min(limit), left.max(0))
    }

    /// Whether a queue borrows when it uses so much more.
    pub(super) fn borrows(&self, queue: usize, (place, more): (usize, i64)) -> bool {
        self.queues[queue].usage[place] + more > self.queues[queue].quotas[place].nominal
    }

    /// Whether it uses no more than its own of all these places.
    pub(super) fn is_within(&self, queue: usize, places: &[usize]) -> bool {
        places.iter().all(|place| !self.borrows(queue, (*place, 0)))
    }

    /// Whether amounts fit a queue; without borrowing, within its own.
    pub(super) fn fits(&self, queue: usize, amounts: &[(usize, i64)], borrowing: bool) -> bool {
        amounts.iter().all(|amount| {
            (borrowing || !self.borrows(queue, *amount)) && amount.1 <= self.most_and_left(queue, amount.0).1
        })
    }

    /// Counts amounts, `1` time or `-1`.
    pub(super) fn count(&mut self, queue: usize, amounts: &[(usize, i64)], times: i64) {
        for (place, amount) in amounts {
            self.queues[queue].usage[*place] += times * amount;
        }
    }

    /// Its dominant resource share.
    pub(super) fn share(&self, queue: usize) -> Share {
        let of = &self.queues[queue];
        let mut most = 0.0_f64;
        for resource in 0..RESOURCES {
            let (mut borrowed, mut lendable) = (0, 0);
            for place in (resource..of.quotas.len()).step_by(RESOURCES) {
                borrowed += (of.usage[place] - of.quotas[place].nominal).max(0);
                lendable += of.cohort.map_or(0, |cohort| self.common(cohort, place).0);
            }
            if borrowed > 0 && lendable > 0 {
                most = most.max(borrowed as f64 / lendable as f64);
            }
        }
        match of.weight == 0.0 && most > 0.0 {
            true => Share(true, most),
            false => Share(false, if most > 0.0 { most / of.weight } else { 0.0 }),
        }
    }
}
