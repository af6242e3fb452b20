//! A list simulated under the tree, with a function that sees every decision. The tree is asked through the policy that every
//! evaluation asks, so what is seen is what is evaluated.

use std::ops::ControlFlow;

use pleach_env::{Error as EnvError, simulate_planner};
use pleach_scheduler::candidate::{Candidate, CandidateKind};
use pleach_scheduler::policy::choice_of;
use pleach_scheduler::{DecisionPoint, JobId, PolicyError, PolicyPlanner, TreePolicy, Watched};

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

/// Simulates the list and shows every decision, until the visitor has seen enough.
///
/// # Errors
/// What the simulation or the visitor reports.
pub(super) fn replay(subject: &Subject, visit: &mut Visit<'_>) -> Result<u64, Error> {
    let (mut number, mut is_done) = (0, false);
    let watched = Watched::new(subject.policy.clone(), |policy: &TreePolicy, point, scores| {
        number += 1;
        let seen = Seen {
            number,
            policy,
            point: *point,
            scores,
            choice: choice_of(policy, point, scores).unwrap_or(0),
        };
        is_done = visit(&seen)?.is_break();
        if is_done {
            Err(PolicyError::Stopped)
        } else {
            Ok(())
        }
    });
    let done = simulate_planner(&subject.workload, &subject.sim, &mut PolicyPlanner::new(watched));
    match done {
        Err(EnvError::Policy(PolicyError::Stopped)) if is_done => {}
        other => drop(other?),
    }
    Ok(number)
}
