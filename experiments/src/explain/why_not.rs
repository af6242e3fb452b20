//! Why a job was passed over, and the nearest change with which it would not have been.

use std::fmt;
use std::ops::ControlFlow;

use pleach_env::simulate_planner;
use pleach_scheduler::candidate::CandidateKind;
use pleach_scheduler::cluster::JobState;
use pleach_scheduler::pass::why_absent;
use pleach_scheduler::tree::{PassedOver, quantity};
use pleach_scheduler::{JobId, Policy as _, PolicyError, PolicyPlanner, Time};
use serde::Serialize;

use super::decision::{action, find, refused};
use super::replay::{Seen, replay};
use super::subject::{Moment, Subject, Told, clock, waited};
use crate::error::Error;

/// Jobs that are named where one was not passed over.
const SHOWN_MAX: usize = 5;

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
    /// Why not the job.
    #[serde(flatten)]
    pub why: PassedOver,
}

/// Why a job was passed over: the first time, or at a moment.
pub(super) fn answer(
    subject: &Subject,
    name: &str,
    moment: Option<Moment>,
) -> Result<Told<WhyNotReport>, Error> {
    let job = subject.find_or("why-not", name, || longest_waits(subject))?;
    match moment {
        Some(moment) => at(subject, job, moment),
        None => first(subject, job),
    }
}

fn at(subject: &Subject, job: JobId, moment: Moment) -> Result<Told<WhyNotReport>, Error> {
    let mut found = None;
    let (num, last_s) = find(subject, moment, |seen| {
        found = Some(match state(subject, seen, job) {
            Some(reason) => Told::Nothing { reason },
            None => Told::Report(Box::new(report(subject, seen, job)?)),
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
        JobState::Held => said("waits for somebody to look after it".into()),
        JobState::Finished => said("has ended already".into()),
    }
}

/// The first instant that went by without the job: the first decision at which it was a candidate, or else merely waited. A
/// decision does not pass over a job that starts at the same instant.
fn first(subject: &Subject, job: JobId) -> Result<Told<WhyNotReport>, Error> {
    let mut absent: Option<(Time, WhyNotReport)> = None;
    let mut present: Option<(Time, WhyNotReport)> = None;
    let mut started = Time::MAX;
    replay(subject, &mut |seen| {
        let (cluster, chosen) = (seen.point.cluster, seen.chosen());
        let now = cluster.now();
        let known = cluster.jobs().get(job.index());
        if known.is_none_or(|known| known.state != JobState::Pending) {
            return Ok(ControlFlow::Continue(()));
        }
        if present.as_ref().is_some_and(|(time, _)| *time < now) {
            return Ok(ControlFlow::Break(()));
        }
        if chosen.job == Some(job) {
            if chosen.kind == CandidateKind::Reserve {
                return Ok(ControlFlow::Continue(()));
            }
            started = now;
            return Ok(ControlFlow::Break(()));
        }
        if present.is_none() && seen.best_of(job).is_some() {
            present = Some((now, report(subject, seen, job)?));
        } else if absent.is_none() {
            absent = Some((now, report(subject, seen, job)?));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let went_by = [present, absent]
        .into_iter()
        .flatten()
        .find(|(time, _)| *time < started);
    Ok(match went_by {
        Some((_, report)) => Told::Report(Box::new(report)),
        None => Told::Nothing {
            reason: format!(
                "Job {} was never passed over: it started at the first decision after it came. {}",
                subject.name(job),
                longest_waits(subject)?
            ),
        },
    })
}

/// The jobs that waited longest: what a question about another job may have meant.
fn longest_waits(subject: &Subject) -> Result<String, Error> {
    let mut planner = PolicyPlanner::new(subject.policy.clone());
    let result = simulate_planner(&subject.workload, &subject.sim, &mut planner)?;
    let waits = result.jobs.iter().map(|job| job.first_start_s - job.submit_s);
    let mut waited: Vec<(f64, usize)> = waits.zip(0..).filter(|(wait_s, _)| *wait_s > 0.0).collect();
    waited.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let num_waited = waited.len();
    let shown = waited.iter().take(SHOWN_MAX).map(|(wait_s, row)| {
        let name = subject.name(JobId(*row as u32));
        format!("{name} ({})", quantity(*wait_s, "s"))
    });
    Ok(match num_waited {
        0 => "No job of this list waited: none was passed over.".to_string(),
        num => {
            let shown: Vec<String> = shown.collect();
            format!(
                "Of the {num} jobs that waited, these did longest: {}.",
                shown.join(", ")
            )
        }
    })
}

fn report(subject: &Subject, seen: &Seen<'_>, job: JobId) -> Result<WhyNotReport, PolicyError> {
    let cluster = seen.point.cluster;
    Ok(WhyNotReport {
        job: subject.name(job).to_string(),
        decision: seen.number,
        time_s: cluster.now().as_secs_f64(),
        time: clock(cluster.now()),
        waited: waited(cluster, job),
        chosen: action(subject, seen, seen.choice),
        why: match seen.best_of(job) {
            Some(own) => {
                let does = action(subject, seen, own);
                seen.policy.passed_over(&seen.point, (seen.choice, own), does)?
            }
            None => PassedOver::absent(why_absent(cluster, &seen.policy.needs(), job)),
        },
    })
}

impl fmt::Display for WhyNotReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "Job {} was passed over at decision {}, at {}, {}: {}.",
            self.job, self.decision, self.time, self.waited, self.chosen
        )?;
        self.why.fmt(out)
    }
}
