//! The weeks since a policy went live beside what was promised of it, and beside the same jobs in the twin.

use std::path::Path;

use pleach_env::JobOutcome;
use pleach_env::workload::Workload;
use pleach_site::promise::{JOBS_MIN, Row, Seen, Stated};
use serde::Serialize;

use super::{Promised, figures, with_waits};
use crate::door::DOOR;
use crate::error::Error;
use crate::evaluate::day::DAY_S;
use crate::evaluate::instances::seeds;
use crate::evaluate::run::in_parallel;
use crate::evaluate::stats::Ratio;
use crate::progress::Watcher;
use crate::twin::{Span, parts, play, wait_s};

/// Fewest days of which anything is said: each day of the week once.
const DAYS_MIN: f64 = 7.0;

/// What a promise is held against.
#[derive(Clone, Copy, Debug)]
pub struct ReviewInput<'a> {
    /// The promise.
    pub promise: &'a Promised,
    /// Its folder, where its policy may lie.
    pub folder: &'a Path,
    /// The site's jobs, with when they began and ended.
    pub workload: &'a Workload,
    /// Jobs that came at this time of the list or later are reviewed, s.
    pub since_s: f64,
    /// What may come on top of the promise, as a part of it.
    pub margin: f64,
}

/// Whether a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Waits are within the promise and its margin.
    Kept,
    /// They are not.
    Broken,
    /// Too few jobs or days.
    TooEarly,
}

/// Jobs as they were promised and as they were seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// What was promised; none where such jobs were not in the promise.
    pub promised: Option<Row>,
    /// What was seen.
    pub seen: Row,
    /// Whether it is broken; none with too few jobs.
    pub is_broken: Option<bool>,
}

/// The same jobs in the twin, with pairs of days.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Mean wait in the twin under the policy, multiplied as in the promise, s.
    pub twin_wait_s: f64,
    /// Mean wait that was seen over it.
    pub wait: Option<Ratio>,
    /// Mean completion time that was seen over that in the twin.
    pub jct: Option<Ratio>,
    /// Mean wait in the twin under the policy over that under the site's earlier one.
    pub gain_wait: Option<Ratio>,
    /// The same of completion times.
    pub gain_jct: Option<Ratio>,
}

/// A promise and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Review {
    /// The policy.
    pub policy: String,
    /// The site's earlier policy.
    pub before: String,
    /// What may come on top of the promise.
    pub margin: f64,
    /// Days since.
    pub num_days: f64,
    /// Jobs that came since of which it is not known when they began and ended: they are not compared.
    pub num_unknown: usize,
    /// Whether it was kept.
    pub outcome: Outcome,
    /// Why it is broken, or what is lacking; empty where it was kept.
    pub why: String,
    /// All jobs first.
    pub rows: Vec<Beside>,
    /// The same jobs in the twin.
    pub paired: Paired,
}

/// Holds a promise against a list.
///
/// # Errors
/// A policy that is not there, a list without jobs that began and ended since, a simulation that fails.
pub fn review(input: &ReviewInput<'_>, watcher: &Watcher) -> Result<Review, Error> {
    let (promise, workload) = (input.promise, input.workload);
    let file = input.folder.join(&promise.policy);
    let place = match file.exists() {
        true => file.display().to_string(),
        false => promise.policy.clone(),
    };
    let policies = [DOOR.open_one(&place)?, DOOR.open_one(&promise.before)?];
    let mut sim = promise.world.scheduling.over(&[], true);
    sim.seed = seeds(promise.world.seed, "test", 1)[0].0;
    let played = in_parallel("twin", watcher, &policies.iter().collect::<Vec<_>>(), |policy| {
        play(workload, &sim, policy)
    })?;
    let came = |job: &JobOutcome| job.submit_s >= input.since_s;
    let seen: Vec<(JobOutcome, [JobOutcome; 2])> = (0..workload.jobs.len())
        .map(|job| [played[0][job], played[1][job]])
        .zip(&workload.jobs)
        .filter_map(|(twin, job)| Some((as_seen(workload, job, twin[0])?, twin)))
        .filter(|(seen, _)| came(seen))
        .collect();
    Error::refuse_if(
        seen.is_empty(),
        "since_day",
        input.since_s / DAY_S,
        "a day after which jobs came, began and ended",
        "Give an earlier one, or an export with Start and End.",
    )?;
    let span = Span::since(workload, input.since_s);
    let own: Vec<JobOutcome> = seen.iter().map(|(seen, _)| *seen).collect();
    let rows = beside(
        input,
        figures::rows(&own.iter().collect::<Vec<_>>(), workload, span),
    );
    let num_days = span.num_days(&own);
    let (outcome, why) = outcome(input, &own, num_days)?;
    let num_came = played[0].iter().filter(|job| came(job)).count();
    let of = |which: usize| {
        seen.iter()
            .map(move |(_, twin)| with_waits(twin[which], promise.wait_factor))
    };
    Ok(Review {
        policy: promise.policy.clone(),
        before: promise.before.clone(),
        margin: input.margin,
        num_days,
        num_unknown: num_came - seen.len(),
        outcome,
        why,
        rows,
        paired: paired(&own, [of(0).collect(), of(1).collect()], span),
    })
}

/// A job as accounting has it. Where all GPU types are equally fast its run time is all the time that it had GPUs, also in several
/// runs; else it had them from its start to its end.
fn as_seen(workload: &Workload, job: &pleach_env::workload::JobSpec, twin: JobOutcome) -> Option<JobOutcome> {
    let observed = job.observed.as_deref()?;
    let (submit_s, start_s) = (job.submit.as_secs_f64(), observed.start.as_secs_f64());
    let (start_s, finish_s) = (start_s.max(submit_s), observed.end?.as_secs_f64().max(start_s));
    let is_flat = workload
        .classes
        .iter()
        .flat_map(|class| &class.speed)
        .all(|speed| *speed == 1.0);
    let held_s = match is_flat {
        true => job.run_time_s.min(finish_s - start_s),
        false => finish_s - start_s,
    };
    Some(JobOutcome {
        first_start_s: start_s,
        finish_s,
        held_s,
        ..twin
    })
}

fn waits(jobs: &[JobOutcome], late_s: f64) -> Seen {
    let waits: Vec<f64> = jobs.iter().map(wait_s).collect();
    Seen {
        num_jobs: waits.len() as u64,
        wait_s: waits.iter().sum(),
        num_late: waits.iter().filter(|wait_s| **wait_s > late_s).count() as u64,
    }
}

fn outcome(input: &ReviewInput<'_>, jobs: &[JobOutcome], num_days: f64) -> Result<(Outcome, String), Error> {
    let limits = input.promise.limits(input.margin).map_err(Error::Failed)?;
    if num_days < DAYS_MIN || (jobs.len() as u64) < JOBS_MIN {
        let why = format!(
            "{} jobs on {num_days:.1} days began and ended, and {JOBS_MIN} on {DAYS_MIN} days are the least",
            jobs.len()
        );
        return Ok((Outcome::TooEarly, why));
    }
    Ok(match limits.broken(&waits(jobs, limits.late_s())) {
        Some(why) => (Outcome::Broken, why),
        None => (Outcome::Kept, String::new()),
    })
}

fn beside(input: &ReviewInput<'_>, seen: Vec<Row>) -> Vec<Beside> {
    let of = |seen: &Row| {
        let same = |row: &&Row| (&row.by, &row.name) == (&seen.by, &seen.name);
        input.promise.rows.iter().find(same).cloned()
    };
    // Of a class or an account only the mean counts: what is late is known of all jobs alone.
    let is_broken = |promised: &Row, seen: &Row| {
        let limits = promised.limits(input.margin).ok()?;
        let mean = seen.figures.get("wait_s").copied().unwrap_or_default().value;
        (seen.num_jobs >= JOBS_MIN).then(|| mean > limits.mean_s())
    };
    let rows = seen.into_iter().map(|seen| {
        let promised = of(&seen);
        Beside {
            is_broken: promised.as_ref().and_then(|promised| is_broken(promised, &seen)),
            promised,
            seen,
        }
    });
    rows.collect()
}

fn paired(seen: &[JobOutcome], twin: [Vec<JobOutcome>; 2], span: Span) -> Paired {
    let ratio = |one: &[JobOutcome], other: &[JobOutcome], of: fn(&JobOutcome) -> f64| {
        let sums = parts(one, span, of).into_iter().zip(parts(other, span, of));
        Ratio::of_sums(&sums.collect::<Vec<_>>())
    };
    let [own, before] = &twin;
    Paired {
        twin_wait_s: own.iter().map(wait_s).sum::<f64>() / own.len().max(1) as f64,
        wait: ratio(seen, own, wait_s),
        jct: ratio(seen, own, JobOutcome::jct_s),
        gain_wait: ratio(own, before, wait_s),
        gain_jct: ratio(own, before, JobOutcome::jct_s),
    }
}

impl Review {
    /// All jobs.
    fn all(&self) -> Option<&Beside> {
        self.rows.first()
    }

    /// What the review says, in words: the outcome, and where the promise is broken what speaks for the policy and against it.
    #[must_use]
    pub fn line(&self) -> String {
        let policy = &self.policy;
        let wait = |row: Option<&Row>| {
            row.and_then(|row| row.figures.get("wait_s"))
                .copied()
                .unwrap_or_default()
        };
        let [promised, seen] = match self.all() {
            Some(all) => [wait(all.promised.as_ref()), wait(Some(&all.seen))],
            None => [Stated::default(); 2],
        };
        let twin_s = self.paired.twin_wait_s;
        let gain = self.paired.gain_wait.map_or(1.0, |ratio| ratio.mean);
        match self.outcome {
            Outcome::TooEarly => format!("too early to say of {policy}: {}", self.why),
            Outcome::Kept => format!(
                "{policy} keeps its promise: mean wait {:.2} h, promised {:.2} h",
                seen.value / 3600.0,
                promised.value / 3600.0
            ),
            Outcome::Broken if twin_s > promised.high * (1.0 + self.margin) => format!(
                "{policy} breaks its promise: {}. In the twin these jobs wait {:.2} h under it too, {gain:.2} of what they wait under \
                 {}: there was more to do than promised for",
                self.why,
                twin_s / 3600.0,
                self.before
            ),
            Outcome::Broken => format!(
                "{policy} breaks its promise: {}. In the twin these jobs wait only {:.2} h under it: the site does what is not \
                 simulated, or the policy does not decide (status of the daemon)",
                self.why,
                twin_s / 3600.0
            ),
        }
    }
}
