//! The order of a policy: it gives GPUs out job by job, candidate by candidate, over the cluster as it is without the jobs that
//! may be stopped, as if all leases had ended.
//!
//! So whatever chooses among candidates, a heuristic, a network or a tree, may keep, stop, move and resize jobs without having been
//! made for it: a running job that it chooses on its type keeps its seat, one that it chooses on another type moves, and one that it
//! does not choose is stopped. Which jobs share, how gangs are seated and which jobs get cores are up to the deal.
//!
//! # Source
//! Leases that all end at once are the rounds of Themis (NSDI'20) and of Gavel (OSDI'20). A pass in place of their auction and
//! programme is ours.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::cluster::decision::{Action, Decision};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::{ActionKind, ActionSet, GpuTypeId, JobId, PolicyError};

use super::order::Order;
use super::sizes::Step;

/// Below all turns of a pass: the steps of elastic jobs beyond the size that it chose, which get what is left over.
const LEFT_OVER: f64 = -1e6;

/// What a pass chose for a job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chosen {
    kind: GpuTypeId,
    num_gpus: u32,
    /// How many were chosen before.
    turn: usize,
}

/// The order in which a policy chooses; a job that is not chosen is dealt no GPUs.
pub struct PassOrder<P> {
    policy: Offered<P>,
    pass: Pass,
    decisions: Vec<Decision>,
    chosen: BTreeMap<JobId, Chosen>,
}

impl<P: Policy> PassOrder<P> {
    /// The order of a policy.
    #[must_use]
    pub fn new(policy: P) -> PassOrder<P> {
        PassOrder {
            policy: Offered(policy),
            pass: Pass::new(),
            decisions: Vec::new(),
            chosen: BTreeMap::new(),
        }
    }
}

impl<P: Policy> std::fmt::Debug for PassOrder<P> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PassOrder")
            .field("policy", &self.policy.name())
            .field("chosen", &self.chosen)
            .finish_non_exhaustive()
    }
}

impl<P: Policy> Order for PassOrder<P> {
    fn look(&mut self, cluster: &Cluster, movable: &[JobId]) -> Result<(), PolicyError> {
        let mut ended = cluster.clone();
        for id in movable {
            ended.preempt(*id);
        }
        self.decisions.clear();
        ended.take_decisions(&mut self.decisions);
        self.decisions.clear();
        self.pass.run(&mut ended, &mut self.policy)?;
        ended.take_decisions(&mut self.decisions);
        let starts = self
            .decisions
            .iter()
            .filter(|decision| decision.action == Action::Start);
        let chosen = starts.enumerate().map(|(turn, start)| {
            let chosen = Chosen {
                kind: ended.job(start.row).gpu_type,
                num_gpus: start.num_gpus,
                turn,
            };
            (start.row, chosen)
        });
        self.chosen = chosen.collect();
        Ok(())
    }

    fn of_job(&self, _cluster: &Cluster, id: JobId) -> f64 {
        let chosen = self.chosen.get(&id);
        chosen.map_or(f64::NEG_INFINITY, |chosen| -(chosen.turn as f64))
    }

    fn of_type(&self, _cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        match self.chosen.get(&id) {
            Some(chosen) if chosen.kind == kind => 0.0,
            _ => f64::NEG_INFINITY,
        }
    }

    fn of_step(&self, _cluster: &Cluster, id: JobId, _kind: GpuTypeId, step: &Step) -> f64 {
        let most = self.chosen.get(&id).map_or(0, |chosen| chosen.num_gpus);
        if step.after == 0 || step.num_gpus <= most {
            return 0.0;
        }
        LEFT_OVER + ln(step.marginal)
    }

    fn terms(&self, _cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Vec<(&'static str, f64)> {
        match self.chosen.get(&id) {
            None => vec![(
                "not chosen: the policy holds, or others were given its GPUs",
                f64::NEG_INFINITY,
            )],
            Some(chosen) if chosen.kind != kind => vec![("chosen on another GPU type", f64::NEG_INFINITY)],
            Some(chosen) => vec![("jobs that the policy chose before it", -(chosen.turn as f64))],
        }
    }
}

/// A policy that is offered what a deal can carry out: starts, sizes, reservations and waiting for a type.
pub(crate) struct Offered<P>(pub(crate) P);

impl<P: Policy> Policy for Offered<P> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn needs(&self) -> Needs {
        let needs = self.0.needs();
        // No job is left to be stopped; which jobs share is up to the deal, and so are cores.
        const DEALT: ActionSet = ActionSet::of(ActionKind::Reserve)
            .with(ActionKind::Sizes)
            .with(ActionKind::WaitForType);
        Needs {
            actions: needs.actions.intersection(DEALT),
            ..needs
        }
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        self.0.choice_rule()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.0.score(point, scores)
    }
}
