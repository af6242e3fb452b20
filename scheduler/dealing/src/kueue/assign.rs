//! Which flavours a workload would take of its ClusterQueue, and whether it fits, must borrow or must preempt for it.
//!
//! # Source
//! `pkg/scheduler/flavorassigner` of Kueue 0.17.

use super::config::Policy;
use super::quota::RESOURCES;
use super::state::State;
use super::workload::{Assignment, Group, Mode, Workload};

impl State {
    /// The flavours that a workload would take now.
    pub(super) fn assign(&mut self, work: &Workload) -> Assignment {
        let mut whole = Assignment::of(Mode::Fit, work.kinds);
        for group in self.groups[work.queue].clone() {
            if group.resources.iter().any(|resource| work.asks[*resource] > 0) {
                let found = self.of_group(work, &group);
                whole.mode = whole.mode.min(found.mode);
                whole.borrows |= found.borrows;
                whole.usage.extend(found.usage);
                whole.contested.extend(found.contested);
                whole.kinds &= found.kinds;
            }
        }
        whole
    }

    /// The flavour of a group of resources: the first that fits, as the queue's settings go on or stop, else the best.
    fn of_group(&mut self, work: &Workload, group: &Group) -> Assignment {
        let mut best = Assignment::of(Mode::NoFit, work.kinds);
        for flavour in &group.flavours {
            let mut found = Assignment::of(Mode::Fit, work.kinds & self.flavours[*flavour]);
            if found.kinds == 0 {
                continue;
            }
            for resource in group
                .resources
                .iter()
                .filter(|resource| work.asks[**resource] > 0)
            {
                let amount = (flavour * RESOURCES + resource, work.asks[*resource]);
                let (mode, borrows) = self.mode(work, amount);
                if mode < Mode::Fit {
                    found.contested.push(amount.0);
                }
                found.mode = found.mode.min(mode);
                found.borrows |= borrows;
                found.usage.push(amount);
            }
            let fungible = &self.config.cluster_queues[work.queue].flavor_fungibility;
            let stops = ["Preempt", "MayStopSearch"].contains(&fungible.when_can_preempt.as_str());
            let goes_on = found.mode <= Mode::NoVictims
                || (found.mode < Mode::Fit && !stops)
                || (found.borrows && fungible.when_can_borrow == "TryNextFlavor");
            if !goes_on {
                return found;
            }
            let key = |of: &Assignment| (of.mode, !of.borrows);
            if found.mode != Mode::NoFit && key(&found) > key(&best) {
                best = found;
            }
        }
        best
    }

    /// How an amount is to be had, and whether it would be borrowed.
    fn mode(&mut self, work: &Workload, amount: (usize, i64)) -> (Mode, bool) {
        let queue = work.queue;
        let (most, left) = self.quotas.most_and_left(queue, amount.0);
        let shares = self.quotas.queues[queue].cohort.is_some();
        let borrows = shares && self.quotas.borrows(queue, amount);
        let preemption = &self.config.cluster_queues[queue].preemption;
        let may_borrow = preemption.borrow_within_cohort.policy != Policy::Never
            || (self.config.fair_sharing && preemption.reclaim_within_cohort != Policy::Never);
        let is_own = amount.1 <= self.quotas.queues[queue].quotas[amount.0].nominal;
        let may_reclaim = shares && !borrows;
        match () {
            () if amount.1 > most => return (Mode::NoFit, false),
            () if amount.1 <= left => return (Mode::Fit, borrows),
            () if !is_own && !may_reclaim && !may_borrow => return (Mode::NoFit, borrows),
            () => {}
        }
        let victims = self.victims(work, &[amount], &[amount.0]);
        if victims.is_empty() {
            return (Mode::NoVictims, borrows);
        }
        let is_own = victims.iter().any(|job| self.held[job].work.queue == queue);
        let borrows = self.without(&victims, |state| shares && state.quotas.borrows(queue, amount));
        (if is_own { Mode::Preempt } else { Mode::Reclaim }, borrows)
    }
}
