//! Why a job was passed over, and the nearest change with which it would not have been.

use std::fmt;
use std::ops::ControlFlow;

use pleach_scheduler::cluster::JobState;
use pleach_scheduler::features::Control;
use pleach_scheduler::pass::why_absent;
use pleach_scheduler::tree::{Contrast, Counterfactual};
use pleach_scheduler::{JobId, Policy as _, PolicyError, Time};
use serde::Serialize;

use super::decision::{action, find, refused};
use super::replay::{Seen, replay};
use super::{Answer, Moment, Subject, clock};
use crate::error::Error;

/// A decision at which a job waited and something else was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhyNotReport {
    /// The job's id in the list.
    pub job: String,
    /// From 1, over the whole list.
    pub decision: u64,
    /// When, s.
    pub time_s: f64,
    /// The same in words.
    pub time: String,
    /// How long it had waited, in words.
    pub waited: String,
    /// What was chosen.
    pub chosen: String,
    /// What the job's best candidate would have done; none where it had no candidate.
    pub own: Option<String>,
    /// Why it had no candidate.
    pub absent: Option<String>,
    /// How what was chosen stands to it.
    pub contrast: Option<Contrast>,
    /// The nearest change with which it would have been chosen; then the nearest that its user can make, if that is another.
    pub alternatives: Vec<Alternative>,
}

/// What would have had to differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// Whether only what the user chooses was changed.
    pub is_users: bool,
    /// The changes.
    pub counterfactual: Counterfactual,
}

/// Why a job was passed over: the first time, or at a moment.
pub(super) fn answer(subject: &Subject, name: &str, moment: Option<Moment>) -> Result<Answer, Error> {
    let job = subject.find("why-not", name)?;
    match moment {
        Some(moment) => at(subject, job, moment),
        None => first(subject, job),
    }
}

fn at(subject: &Subject, job: JobId, moment: Moment) -> Result<Answer, Error> {
    let mut found = None;
    let (num, last_s) = find(subject, moment, |seen| {
        found = Some(match state(subject, seen, job) {
            Some(reason) => Answer::Nothing { reason },
            None => Answer::WhyNot(Box::new(report(subject, seen, job)?)),
        });
        Ok(())
    })?;
    found.ok_or_else(|| refused(moment, num, last_s))
}

/// Why the job was not there to be passed over; none where it was.
fn state(subject: &Subject, seen: &Seen<'_>, job: JobId) -> Option<String> {
    let (cluster, name) = (seen.point.cluster, subject.name(job));
    let (number, time) = (seen.number, clock(cluster.now()));
    let said = |what: String| Some(format!("At decision {number}, at {time}, job {name} {what}."));
    let Some(known) = cluster.jobs().get(job.index()) else {
        let submit = clock(subject.workload.jobs[job.index()].submit);
        return said(format!("has not come yet; it comes at {submit}"));
    };
    match known.state {
        JobState::Pending if seen.chosen().job == Some(job) => said(format!(
            "is what was chosen: {}",
            action(subject, seen, seen.choice)
        )),
        JobState::Pending => None,
        JobState::Running => said("runs already".into()),
        _ => said("has ended already".into()),
    }
}

/// The first instant that went by without the job: the first decision at which it was a candidate, or else merely waited.
fn first(subject: &Subject, job: JobId) -> Result<Answer, Error> {
    let (mut absent, mut present): (Option<WhyNotReport>, Option<(Time, WhyNotReport)>) = (None, None);
    let mut is_over = false;
    replay(subject, &mut |seen| {
        let cluster = seen.point.cluster;
        let Some(known) = cluster.jobs().get(job.index()) else {
            return Ok(ControlFlow::Continue(()));
        };
        let is_pending = known.state == JobState::Pending;
        let went_by = |time: &Time| cluster.now() > *time;
        if present.as_ref().is_some_and(|(time, _)| went_by(time)) && is_pending {
            return Ok(ControlFlow::Break(()));
        }
        if !is_pending {
            // Who was passed over and started in the same instant was not passed over.
            present = None;
            is_over = true;
            return Ok(ControlFlow::Break(()));
        }
        if present.as_ref().is_some_and(|(time, _)| !went_by(time)) || seen.chosen().job == Some(job) {
            return Ok(ControlFlow::Continue(()));
        }
        if seen.best_of(job).is_some() {
            present = Some((cluster.now(), report(subject, seen, job)?));
        } else if absent.is_none() {
            absent = Some(report(subject, seen, job)?);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let waited_s = absent.as_ref().map(|report| report.time_s);
    let found = present.map(|(_, report)| report).or(absent);
    Ok(match found {
        Some(report) if !is_over || waited_s.is_some() => Answer::WhyNot(Box::new(report)),
        _ => Answer::Nothing {
            reason: format!(
                "Job {} never waited at a decision: it started as soon as it came, or whenever it could be chosen it was.",
                subject.name(job)
            ),
        },
    })
}

fn report(subject: &Subject, seen: &Seen<'_>, job: JobId) -> Result<WhyNotReport, PolicyError> {
    let cluster = seen.point.cluster;
    let own = seen.best_of(job);
    let (mut contrast, mut alternatives) = (None, Vec::new());
    if let Some(own) = own {
        contrast = Some(seen.policy.contrast(&seen.point, (seen.choice, own))?);
        alternatives = nearest(seen, job)?;
    }
    Ok(WhyNotReport {
        job: subject.name(job).to_string(),
        decision: seen.number,
        time_s: cluster.now().as_secs_f64(),
        time: clock(cluster.now()),
        waited: subject.waited(cluster, job),
        chosen: action(subject, seen, seen.choice),
        own: own.map(|own| action(subject, seen, own)),
        absent: match own {
            Some(_) => None,
            None => Some(why_absent(cluster, &seen.policy.needs(), job)),
        },
        contrast,
        alternatives,
    })
}

/// The nearest counterfactual over all candidates of a job, and the nearest that is the user's if the first is not.
fn nearest(seen: &Seen<'_>, job: JobId) -> Result<Vec<Alternative>, PolicyError> {
    let mut alternatives: Vec<Alternative> = Vec::new();
    let is_users = |control: Control| control == Control::User;
    for (only_users, allowed) in [
        (false, &(|_| true) as &dyn Fn(Control) -> bool),
        (true, &is_users),
    ] {
        let mut best: Option<Counterfactual> = None;
        for (index, row) in seen.candidates().iter().enumerate() {
            if row.job != Some(job) {
                continue;
            }
            let found = seen
                .policy
                .counterfactual(&seen.point, (index, seen.choice), allowed)?;
            let size = |found: &Counterfactual| (found.changes.len(), found.distance);
            let Some(found) = found else { continue };
            if best.as_ref().is_none_or(|best| size(&found) < size(best)) {
                best = Some(found);
            }
        }
        let is_known =
            |found: &Counterfactual| alternatives.iter().any(|known| known.counterfactual == *found);
        if let Some(counterfactual) = best.filter(|found| !is_known(found)) {
            alternatives.push(Alternative {
                is_users: only_users,
                counterfactual,
            });
        }
    }
    Ok(alternatives)
}

impl fmt::Display for WhyNotReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WhyNotReport { job, waited, .. } = self;
        writeln!(
            out,
            "Job {job} was passed over at decision {}, at {}, after {waited} of waiting: {}.",
            self.decision, self.time, self.chosen
        )?;
        if let Some(absent) = &self.absent {
            return writeln!(out, "It was not among the candidates: {absent}.");
        }
        if let Some(own) = &self.own {
            writeln!(out, "Its best candidate: {own}.")?;
        }
        if let Some(contrast) = &self.contrast {
            writeln!(out, "What was chosen against it: {contrast}.")?;
        }
        if self.alternatives.is_empty() {
            writeln!(out, "No change of this job alone would have brought it first.")?;
        }
        for found in &self.alternatives {
            let who = if found.is_users {
                "By what its user chooses alone it"
            } else {
                "It"
            };
            writeln!(out, "{who} would have come first with {}.", found.counterfactual)?;
        }
        Ok(())
    }
}
