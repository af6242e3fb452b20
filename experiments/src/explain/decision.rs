//! One decision in words: what was chosen by which conditions, and where its path parts from those of the others.

use std::fmt;
use std::ops::ControlFlow;

use pleach_scheduler::actions::Words;
use pleach_scheduler::pass::why_absent;
use pleach_scheduler::tree::{Contrast, count, quantity};
use pleach_scheduler::{ActionSet, JobId, Policy as _, PolicyError};
use serde::Serialize;

use super::replay::{Seen, replay};
use super::subject::{Moment, Subject, Told, clock, waited};
use crate::error::Error;

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionReport {
    /// From 1, over the whole list.
    pub decision: u64,
    /// When, s.
    pub time_s: f64,
    /// The same in words.
    pub time: String,
    /// What was done.
    pub action: String,
    /// The job that it is about; none for hold.
    pub job: Option<String>,
    /// How long that job had waited, in words.
    pub waited: Option<String>,
    /// Tier of what was chosen; 1 is the best.
    pub tier: usize,
    /// Number of tiers.
    pub num_tiers: usize,
    /// The conditions on the path of what was chosen, with its values.
    pub conditions: Vec<String>,
    /// What decided in the tree's place, and why; the tier is then the tree's opinion alone.
    pub aside: Option<String>,
    /// Why a guard had it chosen.
    pub guard: Option<String>,
    /// Candidates, hold included.
    pub num_candidates: usize,
    /// Other admissible candidates in the same tier.
    pub num_equal: usize,
    /// Admissible candidates in worse tiers.
    pub num_worse: usize,
    /// The best candidate of another job, and the job that waits longest.
    pub rivals: Vec<RivalReport>,
    /// What else happened to the job that was asked for.
    pub also: Vec<String>,
}

/// A job that was not chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RivalReport {
    /// Its id in the list.
    pub job: String,
    /// Why it is named.
    pub role: String,
    /// What its best candidate would have done.
    pub action: Option<String>,
    /// How what was chosen stands to that.
    pub contrast: Option<Contrast>,
    /// Why it has no candidate.
    pub absent: Option<String>,
}

/// The decision that started a job.
pub(super) fn of_job(subject: &Subject, name: &str) -> Result<Told<DecisionReport>, Error> {
    let job = subject.find("job", name)?;
    let (mut report, mut also) = (None, Vec::new());
    // Where jobs cannot be stopped, nothing more can be done to a job that runs.
    let can = subject.sim.capabilities.actions();
    let stops = !can.intersection(ActionSet::STOPPING).is_empty();
    replay(subject, &mut |seen| {
        let chosen = seen.chosen();
        let is_it = chosen.job == Some(job);
        let is_start = chosen.kind.starts();
        if is_it && is_start && report.is_none() {
            report = Some(describe(subject, seen)?);
            return Ok(if stops {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            });
        }
        if is_it || seen.point.candidates.victims(chosen).contains(&job) {
            let at = clock(seen.point.cluster.now());
            let what = action(subject, seen, seen.choice);
            also.push(format!("decision {}, at {at}: {what}", seen.number));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(match report {
        Some(mut report) => {
            report.also = also;
            Told::Report(Box::new(report))
        }
        None => Told::Nothing {
            reason: format!("Job {name} was started by no decision of the tree."),
        },
    })
}

/// The decision of a moment.
pub(super) fn at(subject: &Subject, moment: Moment) -> Result<Told<DecisionReport>, Error> {
    let mut report = None;
    let (num, last_s) = find(subject, moment, |seen| {
        report = Some(describe(subject, seen)?);
        Ok(())
    })?;
    report
        .map(|report| Told::Report(Box::new(report)))
        .ok_or_else(|| refused(moment, num, last_s))
}

/// Shows the decision of a moment; the number of decisions seen and the time of the last, s.
pub(super) fn find(
    subject: &Subject,
    moment: Moment,
    mut show: impl FnMut(&Seen<'_>) -> Result<(), PolicyError> + Send,
) -> Result<(u64, f64), Error> {
    let mut last_s = 0.0;
    let num = replay(subject, &mut |seen| {
        last_s = seen.point.cluster.now().as_secs_f64();
        let is_it = match moment {
            Moment::Time(time_s) => last_s >= time_s,
            Moment::Number(number) => seen.number == number,
        };
        if is_it {
            show(seen)?;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((num, last_s))
}

/// There is no such decision.
pub(super) fn refused(moment: Moment, num: u64, last_s: f64) -> Error {
    match moment {
        Moment::Time(time_s) => Error::config(
            "at",
            time_s,
            format!("0 to {last_s} s, when the last decision of this list is made"),
            "Give an earlier time.",
        ),
        Moment::Number(number) => Error::config(
            "decision",
            number,
            format!("1 to {num}, the decisions of this list"),
            "Give one of them.",
        ),
    }
}

/// The first decision in which a job overtook one that waited longer.
pub(super) fn overtaking(subject: &Subject) -> Result<Told<DecisionReport>, Error> {
    let mut report = None;
    let num = replay(subject, &mut |seen| {
        let (chosen, cluster) = (seen.chosen(), seen.point.cluster);
        let overtakes = |job: JobId| {
            let submit = cluster.job(job).submit;
            oldest(seen).is_some_and(|other| cluster.job(other).submit < submit)
        };
        let starts = chosen.kind.starts();
        if starts && chosen.job.is_some_and(overtakes) {
            report = Some(describe(subject, seen)?);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(match report {
        Some(report) => Told::Report(Box::new(report)),
        None => Told::Nothing {
            reason: format!(
                "No job overtook another in {}. --decision N explains any of them.",
                count(num, "decision", "decisions")
            ),
        },
    })
}

/// The job that waits longest.
fn oldest(seen: &Seen<'_>) -> Option<JobId> {
    seen.point.cluster.pending().min()
}

/// A decision in words.
pub(super) fn describe(subject: &Subject, seen: &Seen<'_>) -> Result<DecisionReport, PolicyError> {
    let (cluster, chosen) = (seen.point.cluster, seen.chosen());
    let why = seen.policy.explain(&seen.point, seen.choice)?;
    let score = seen.scores[seen.choice];
    let others = seen
        .scores
        .iter()
        .zip(seen.point.observation.mask)
        .filter(|(_, may)| **may);
    let num_worse = others.filter(|(other, _)| **other < score).count();
    Ok(DecisionReport {
        decision: seen.number,
        time_s: cluster.now().as_secs_f64(),
        time: clock(cluster.now()),
        action: action(subject, seen, seen.choice),
        job: chosen.job.map(|job| subject.name(job).to_string()),
        waited: chosen.job.map(|job| waited(cluster, job)),
        tier: why.tier,
        num_tiers: why.num_tiers,
        conditions: why.conditions(),
        aside: why.aside,
        guard: why.guard,
        num_candidates: seen.scores.len(),
        num_equal: why.num_equal,
        num_worse,
        rivals: rivals(subject, seen)?,
        also: Vec::new(),
    })
}

fn rivals(subject: &Subject, seen: &Seen<'_>) -> Result<Vec<RivalReport>, PolicyError> {
    let (cluster, own) = (seen.point.cluster, seen.chosen().job);
    let mut named: Vec<(JobId, String)> = Vec::new();
    let next = seen.best(|row| row.job.is_some() && row.job != own);
    if let Some(job) = next.and_then(|index| seen.candidates()[index].job) {
        named.push((job, "the best of the others".into()));
    }
    if let Some(job) = oldest(seen).filter(|job| Some(*job) != own) {
        let longest = format!("which waits longest, since {}", clock(cluster.job(job).submit));
        match named.first_mut() {
            Some((other, role)) if *other == job => *role = format!("{role}, {longest}"),
            _ => named.push((job, longest)),
        }
    }
    named
        .into_iter()
        .map(|(job, role)| {
            let index = seen.best_of(job);
            let contrast = index.map(|index| seen.policy.contrast(&seen.point, (seen.choice, index)));
            Ok(RivalReport {
                job: subject.name(job).to_string(),
                role,
                action: index.map(|index| action(subject, seen, index)),
                contrast: contrast.transpose()?,
                absent: match index {
                    Some(_) => None,
                    None => Some(why_absent(cluster, &seen.policy.needs(), job)),
                },
            })
        })
        .collect()
}

/// What a candidate does, with the names of the list.
pub(super) fn action(subject: &Subject, seen: &Seen<'_>, index: usize) -> String {
    let set = seen.point.candidates;
    let candidate = &seen.candidates()[index];
    let place = candidate.facts.map_or(String::new(), |facts| {
        let (gpus, nodes) = (
            count(facts.num_gpus.into(), "GPU", "GPUs"),
            count(facts.num_nodes.into(), "node", "nodes"),
        );
        format!(" on {gpus} of {nodes}")
    });
    let victims: Vec<&str> = set
        .victims(candidate)
        .iter()
        .map(|victim| subject.name(*victim))
        .collect();
    let mut told = candidate.kind.event(&Words {
        job: candidate.job.map_or("?", |job| subject.name(job)).into(),
        place,
        victims: victims.join(", "),
    });
    if candidate.reserved_type.is_some() {
        let wait = quantity(candidate.wait_to_fit_s, "s");
        told.push_str(&format!(", which is believed to fit in {wait}"));
    }
    told
}

impl DecisionReport {
    fn write_tier(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "It is in tier {} of {}", self.tier, self.num_tiers)?;
        if !self.conditions.is_empty() {
            write!(out, ": {}", self.conditions.join(", "))?;
        }
        let (equal, worse) = (self.num_equal, self.num_worse);
        writeln!(
            out,
            ". Of {} candidates, hold included, {equal} more {are} in its tier and {worse} in worse ones.",
            self.num_candidates,
            are = if equal == 1 { "is" } else { "are" },
        )
    }
}

impl fmt::Display for DecisionReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Decision {}, at {}: {}",
            self.decision, self.time, self.action
        )?;
        if let Some(waited) = &self.waited {
            write!(out, " {waited}")?;
        }
        writeln!(out, ".")?;
        match &self.aside {
            Some(aside) => writeln!(out, "Here {aside}.")?,
            None => self.write_tier(out)?,
        }
        if let Some(guard) = &self.guard {
            writeln!(out, "It is {guard}.")?;
        }
        for rival in &self.rivals {
            writeln!(out, "{rival}")?;
        }
        for also in &self.also {
            writeln!(out, "Also {also}.")?;
        }
        Ok(())
    }
}

impl fmt::Display for RivalReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RivalReport {
            job,
            role,
            action,
            contrast,
            absent,
        } = self;
        write!(out, "Against job {job}, {role}: ")?;
        match (contrast, absent) {
            (Some(contrast), _) => {
                let instead = action.as_deref().unwrap_or_default();
                write!(out, "{contrast}. Instead: {instead}.")
            }
            (None, Some(absent)) => write!(out, "no candidate, for {absent}."),
            (None, None) => write!(out, "no candidate."),
        }
    }
}
