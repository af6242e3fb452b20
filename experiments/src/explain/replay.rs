//! A list simulated under the tree, with somebody who sees every decision. The tree is asked through the policy that every
//! evaluation asks, so what is seen is what is evaluated.

use std::ops::ControlFlow;

use pleach_env::{Error as EnvError, simulate_planner};
use pleach_scheduler::candidate::{Candidate, CandidateKind};
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey, choice_of};
use pleach_scheduler::{DecisionPoint, JobId, Policy, PolicyError, PolicyPlanner, TreePolicy};

use super::subject::Subject;
use crate::error::Error;

/// One decision.
pub(super) struct Seen<'a> {
    /// From 1.
    pub(super) number: u64,
    pub(super) policy: &'a TreePolicy,
    pub(super) point: DecisionPoint<'a>,
    pub(super) scores: &'a [f32],
    pub(super) choice: usize,
}

impl Seen<'_> {
    /// What was chosen.
    pub(super) fn chosen(&self) -> &Candidate {
        &self.candidates()[self.choice]
    }

    pub(super) fn candidates(&self) -> &[Candidate] {
        self.point.candidates.iter().as_slice()
    }

    /// The first of the candidates that are kept, as the tree orders them.
    pub(super) fn best(&self, keep: impl Fn(&Candidate) -> bool) -> Option<usize> {
        let admissible = self.point.observation.mask.iter().zip(self.candidates());
        let mask: Vec<bool> = admissible.map(|(may, row)| *may && keep(row)).collect();
        let mut point = self.point;
        point.observation.mask = &mask;
        choice_of(self.policy, &point, self.scores)
    }

    /// The best candidate of a job; a start where it has one.
    pub(super) fn best_of(&self, job: JobId) -> Option<usize> {
        let start = self.best(|row| row.job == Some(job) && row.kind == CandidateKind::Start);
        start.or_else(|| self.best(|row| row.job == Some(job)))
    }
}

type Visit<'a> = dyn FnMut(&Seen<'_>) -> Result<ControlFlow<()>, PolicyError> + Send + 'a;

/// The tree, watched.
struct Watched<'a, 'b> {
    tree: TreePolicy,
    number: u64,
    is_done: bool,
    visit: &'a mut Visit<'b>,
}

impl Policy for Watched<'_, '_> {
    fn name(&self) -> &str {
        self.tree.name()
    }

    fn needs(&self) -> Needs {
        self.tree.needs()
    }

    fn tie_key(&self) -> TieKey {
        self.tree.tie_key()
    }

    fn key_weights(&self) -> &[KeyWeight] {
        self.tree.key_weights()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.tree.score(point, scores)?;
        self.number += 1;
        let seen = Seen {
            number: self.number,
            policy: &self.tree,
            point,
            scores,
            choice: choice_of(&self.tree, &point, scores).unwrap_or(0),
        };
        if (self.visit)(&seen)?.is_break() {
            self.is_done = true;
            return Err(PolicyError::Stopped);
        }
        Ok(())
    }
}

/// Simulates the list and shows every decision, until the visitor has seen enough.
///
/// # Errors
/// What the simulation or the visitor reports.
pub(super) fn replay(subject: &Subject, visit: &mut Visit<'_>) -> Result<u64, Error> {
    let watched = Watched {
        tree: subject.policy.clone(),
        number: 0,
        is_done: false,
        visit,
    };
    let mut planner = PolicyPlanner::new(watched);
    match simulate_planner(&subject.workload, &subject.sim, &mut planner) {
        Err(EnvError::Policy(PolicyError::Stopped)) if planner.policy().is_done => {}
        other => drop(other?),
    }
    Ok(planner.policy().number)
}
