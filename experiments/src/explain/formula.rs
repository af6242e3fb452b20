//! Decisions of a formula in words: the score of what was chosen and of what was not, by conditions and terms.

use std::fmt;

use pleach_env::{Error as EnvError, simulate_planner};
use pleach_scheduler::policy::{Policy as _, choice_of};
use pleach_scheduler::{FormulaPolicy, JobId, PolicyError, PolicyPlanner, Watched};
use serde::Serialize;

use super::subject::{ListOf, Moment, Told, clock};
use crate::error::Error;

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FormulaReport {
    /// From 1, over the whole list.
    pub decision: u64,
    /// When, s.
    pub time_s: f64,
    /// The same in words.
    pub time: String,
    /// The job that was chosen; none for hold.
    pub job: Option<String>,
    /// Why that has its score, a line for each part.
    pub reason: String,
    /// The job that was asked for, where it was not chosen, and why its best candidate has its score; of one without a candidate
    /// that there is none.
    pub passed_over: Option<(String, String)>,
}

impl fmt::Display for FormulaReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indented = |text: &str| text.replace('\n', "\n  ");
        let what = self
            .job
            .as_ref()
            .map_or("hold".to_owned(), |job| format!("job {job}"));
        writeln!(
            out,
            "Decision {}, at {}: {what}\n  {}",
            self.decision,
            self.time,
            indented(&self.reason)
        )?;
        match &self.passed_over {
            Some((job, reason)) => writeln!(out, "In place of job {job}\n  {}", indented(reason)),
            None => Ok(()),
        }
    }
}

/// Which decision of a formula is meant: at a moment, else of a job, else the first in which a job overtook the oldest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) job: Option<&'a str>,
    /// Whether the job is to be started by it, and not to be passed over.
    pub(super) is_start: bool,
    pub(super) moment: Option<Moment>,
}

/// Answers a question about a formula on a list.
pub(super) fn answer(
    list: &ListOf,
    policy: &FormulaPolicy,
    asked: Asked<'_>,
) -> Result<Told<FormulaReport>, Error> {
    let Asked { is_start, moment, .. } = asked;
    let job = asked.job.map(|name| list.find("job", name)).transpose()?;
    let (mut number, mut found) = (0, None);
    let watched = Watched::new(policy.clone(), |policy: &FormulaPolicy, point, scores| {
        number += 1;
        let cluster = point.cluster;
        let choice = choice_of(policy, point, scores).unwrap_or(0);
        let row = |index: usize| point.candidates.get(index);
        let chosen = row(choice).and_then(|row| row.job);
        let is_waiting = |job: JobId| cluster.pending().any(|other| other == job);
        let is_it = match (moment, job) {
            (Some(Moment::Number(own)), _) => number == own,
            (Some(Moment::Time(from_s)), _) => cluster.now().as_secs_f64() >= from_s,
            (None, Some(job)) if is_start => chosen == Some(job),
            (None, Some(job)) => chosen.is_some_and(|other| other != job) && is_waiting(job),
            (None, None) => chosen
                .zip(cluster.pending().min())
                .is_some_and(|(own, oldest)| cluster.job(oldest).submit < cluster.job(own).submit),
        };
        if !is_it {
            return Ok(());
        }
        let other = job
            .or_else(|| cluster.pending().min())
            .filter(|other| Some(*other) != chosen);
        let of = |job: JobId| {
            (1..scores.len()).filter(move |index| row(*index).is_some_and(|row| row.job == Some(job)))
        };
        let passed_over = other.map(|job| {
            let best = of(job).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
            let reason = best.and_then(|best| policy.reason(*point, best));
            (
                list.name(job).to_owned(),
                reason.unwrap_or_else(|| "it has no candidate here".into()),
            )
        });
        found = Some(FormulaReport {
            decision: number,
            time_s: cluster.now().as_secs_f64(),
            time: clock(cluster.now()),
            job: chosen.map(|job| list.name(job).to_owned()),
            reason: policy.reason(*point, choice).unwrap_or_default(),
            passed_over,
        });
        Err(PolicyError::Stopped)
    });
    let done = simulate_planner(&list.workload, &list.sim, &mut PolicyPlanner::new(watched));
    match (done, found) {
        (_, Some(found)) => Ok(Told::Report(Box::new(found))),
        (Err(EnvError::Policy(PolicyError::Stopped)) | Ok(_), None) => Ok(Told::Nothing {
            reason: format!("There is no such decision among the {number} of this list."),
        }),
        (Err(error), None) => Err(error.into()),
    }
}
