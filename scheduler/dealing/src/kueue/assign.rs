//! Which flavours a workload would take of its ClusterQueue, and whether it fits, must borrow or must preempt for it.
//!
//! # Source
//! `pkg/scheduler/flavorassigner` of Kueue 0.17.

use super::config::Policy;
use super::quota::{Amounts, RESOURCES};
use super::state::{State, Workload};

/// How an amount is to be had, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// Never, as quotas are.
    NoFit,
    /// By preemption, but there is nothing to preempt.
    NoVictims,
    /// By preemption within its ClusterQueue, too.
    Preempt,
    /// By preemption in others.
    Reclaim,
    /// It fits.
    Fit,
}

/// What a workload would take.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) mode: Mode,
    /// How far up it has to borrow; 0: not at all.
    pub(super) borrowing: u32,
    pub(super) usage: Amounts,
    /// Places at which something must be preempted.
    pub(super) contested: Vec<usize>,
    /// GPU types of its flavours.
    pub(super) kinds: u64,
}

impl Assignment {
    /// Whether Kueue takes this one rather than another.
    fn is_better(&self, other: &Assignment) -> bool {
        let key = |of: &Assignment| (of.mode, std::cmp::Reverse(of.borrowing));
        self.mode != Mode::NoFit && key(self) > key(other)
    }
}

impl State {
    /// The flavours that a workload would take now.
    pub(super) fn assign(&mut self, work: &Workload) -> Assignment {
        let mut whole = Assignment {
            mode: Mode::Fit,
            borrowing: 0,
            usage: Amounts::new(),
            contested: Vec::new(),
            kinds: work.kinds,
        };
        for group in self.groups[work.queue].clone() {
            let found = self.of_group(work, &group);
            whole.mode = whole.mode.min(found.mode);
            whole.borrowing = whole.borrowing.max(found.borrowing);
            whole.usage.extend(found.usage);
            whole.contested.extend(found.contested);
            whole.kinds &= found.kinds;
        }
        whole
    }

    /// The flavour of a group of resources: the first that fits, as the queue's settings go on or stop, else the best.
    fn of_group(&mut self, work: &Workload, group: &Group) -> Assignment {
        let none = Assignment {
            mode: Mode::NoFit,
            borrowing: 0,
            usage: Amounts::new(),
            contested: Vec::new(),
            kinds: work.kinds,
        };
        if group.resources.iter().all(|resource| work.asks[*resource] == 0) {
            return Assignment {
                mode: Mode::Fit,
                ..none
            };
        }
        let mut best = none.clone();
        for flavour in &group.flavours {
            let kinds = work.kinds & self.flavours[*flavour];
            if kinds == 0 {
                continue;
            }
            let mut found = Assignment {
                mode: Mode::Fit,
                kinds,
                ..none.clone()
            };
            let mut worst = (Mode::Fit, 0);
            for resource in group
                .resources
                .iter()
                .filter(|resource| work.asks[**resource] > 0)
            {
                let amount = (flavour * RESOURCES + resource, work.asks[*resource]);
                let (mode, borrowing) = self.mode(work, amount);
                if (mode, std::cmp::Reverse(borrowing)) < (worst.0, std::cmp::Reverse(worst.1)) {
                    worst = (mode, borrowing);
                }
                if mode < Mode::Fit {
                    found.contested.push(amount.0);
                }
                found.borrowing = found.borrowing.max(borrowing);
                found.usage.push(amount);
            }
            found.mode = worst.0;
            let fungible = &self.config.cluster_queues[work.queue].flavor_fungibility;
            let goes_on = found.mode <= Mode::NoVictims
                || (found.mode < Mode::Fit
                    && !["Preempt", "MayStopSearch"].contains(&fungible.when_can_preempt.as_str()))
                || (worst.1 > 0 && fungible.when_can_borrow == "TryNextFlavor");
            if !goes_on {
                return found;
            }
            if found.is_better(&best) {
                best = found;
            }
        }
        best
    }

    /// How an amount is to be had, and how far up it would be borrowed.
    fn mode(&mut self, work: &Workload, amount: (usize, i64)) -> (Mode, u32) {
        let (place, value) = amount;
        let queue = work.queue;
        if value > self.tree.most(queue, place) {
            return (Mode::NoFit, 0);
        }
        let (height, may_reclaim) = self.tree.borrowing_height(queue, self.num_queues(), amount);
        if value <= self.tree.left(queue, place) {
            return (Mode::Fit, height);
        }
        let preemption = &self.config.cluster_queues[queue].preemption;
        let may_borrow = preemption.borrow_within_cohort.policy != Policy::Never
            || (self.config.fair_sharing && preemption.reclaim_within_cohort != Policy::Never);
        if value > self.tree.quota(queue, place).nominal && !may_reclaim && !may_borrow {
            return (Mode::NoFit, height);
        }
        let victims = self.victims(work, &[amount], &[place]);
        if victims.is_empty() {
            return (Mode::NoVictims, height);
        }
        let is_own = victims.iter().any(|job| self.held[job].work.queue == queue);
        self.without(&victims, |state| {
            let (height, _) = state.tree.borrowing_height(queue, state.num_queues(), amount);
            (if is_own { Mode::Preempt } else { Mode::Reclaim }, height)
        })
    }
}

/// A group of resources of a ClusterQueue and its flavours in order.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) resources: Vec<usize>,
    pub(super) flavours: Vec<usize>,
}
