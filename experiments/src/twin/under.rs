//! The jobs of a list under other policies than the site's: waits and completion times as ratios to what the simulation of the
//! site's own policy gives, with intervals over days or weeks.
//!
//! The whole list is simulated under each policy, so that the queue goes on from one day to the next; jobs that came in a part of it
//! are compared. What one policy does to a day is no independent draw of what it does to the next, so an interval over days of a
//! cluster whose queue lasts for weeks is too narrow.

use std::sync::Arc;

use pleach_env::workload::Workload;
use pleach_env::{JobOutcome, Metrics, SimConfig, simulate_planner};
use serde::{Deserialize, Serialize};

use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::day::DAY_S;
use crate::evaluate::instances::Instance;
use crate::evaluate::run::in_parallel;
use crate::evaluate::stand_in::stand_ins;
use crate::evaluate::stats::{Ratio, mean};
use crate::progress::Watcher;

/// Parts that an interval should rest on (lab/notes/validation.md), as far as the list is long enough.
const PARTS_WANTED: f64 = 10.0;
/// Shortest and longest part, days.
const PART_DAYS: (f64, f64) = (1.0, 7.0);

/// Which jobs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// They came at this time of the list or later, s.
    pub since_s: f64,
    /// Length of the parts over which intervals are taken, days.
    pub part_days: f64,
}

impl Span {
    /// From a time on, in the longest parts, of a week at most and a day at least, of which there are ten.
    #[must_use]
    pub fn since(workload: &Workload, since_s: f64) -> Span {
        let last_s = workload.jobs.last().map_or(0.0, |job| job.submit.as_secs_f64());
        let days = ((last_s - since_s) / DAY_S / PARTS_WANTED).floor();
        Span {
            since_s,
            part_days: days.clamp(PART_DAYS.0, PART_DAYS.1),
        }
    }

    /// The part of a job that came in it.
    pub(crate) fn part_of(self, job: &JobOutcome) -> usize {
        ((job.submit_s - self.since_s) / (self.part_days * DAY_S)) as usize
    }

    /// Days from its beginning to the last of its jobs.
    pub(crate) fn num_days(self, jobs: &[JobOutcome]) -> f64 {
        let last_s = jobs.iter().map(|job| job.submit_s).fold(self.since_s, f64::max);
        (last_s - self.since_s) / DAY_S
    }
}

/// What is played.
#[derive(Clone, Copy, Debug)]
pub struct UnderInput<'a> {
    /// All jobs.
    pub workload: &'a Workload,
    /// The cluster and what is known.
    pub sim: &'a SimConfig,
    /// The site's own policy.
    pub site: &'a PolicySpec,
    /// The others.
    pub others: &'a [PolicySpec],
    /// The jobs to compare.
    pub span: Span,
}

/// A policy on the jobs that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderRow {
    /// Its name.
    pub policy: String,
    /// Mean completion time, s.
    pub avg_jct_s: f64,
    /// 99th percentile of the same, s.
    pub p99_jct_s: f64,
    /// Mean wait, s.
    pub avg_wait_s: f64,
    /// Mean bounded slowdown, at least 1.
    pub avg_slowdown: f64,
    /// Jain's index over tenants' mean slowdowns, at most 1.
    pub fairness: f64,
    /// Mean completion time over that under the site's policy.
    pub jct: Option<Ratio>,
    /// Mean wait over that under the site's policy; none where no job waits there.
    pub wait: Option<Ratio>,
    /// The two of each part, summed: completion times, s.
    pub jct_parts_s: Vec<f64>,
}

/// A list under several policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Under {
    /// The jobs that are compared.
    pub span: Span,
    /// How many jobs.
    pub num_jobs: usize,
    /// Mean wait that was observed, s, of those of which it is known.
    pub observed_wait_s: Option<f64>,
    /// The site's policy first.
    pub rows: Vec<UnderRow>,
}

impl Under {
    /// The row of a policy.
    #[must_use]
    pub fn row(&self, policy: &str) -> Option<&UnderRow> {
        self.rows.iter().find(|row| row.policy == policy)
    }

    /// Mean completion time of one over that of another, part by part.
    #[must_use]
    pub fn between(&self, policy: &str, reference: &str) -> Option<Ratio> {
        let (one, other) = (self.row(policy)?, self.row(reference)?);
        let pairs = one
            .jct_parts_s
            .iter()
            .copied()
            .zip(other.jct_parts_s.iter().copied());
        Ratio::of_sums(&pairs.collect::<Vec<_>>())
    }
}

/// Simulates the list under every policy and compares.
///
/// # Errors
/// A policy that fails, or a part of the list without jobs.
pub fn under(input: &UnderInput<'_>, watcher: &Watcher) -> Result<Under, Error> {
    let policies: Vec<&PolicySpec> = std::iter::once(input.site).chain(input.others).collect();
    let played = in_parallel("under", watcher, &policies, |policy| {
        play(input.workload, input.sim, policy)
    })?;
    let came = |outcome: &JobOutcome| outcome.submit_s >= input.span.since_s;
    let compared: Vec<Vec<JobOutcome>> = played
        .into_iter()
        .map(|jobs| jobs.into_iter().filter(came).collect())
        .collect();
    Error::refuse_if(
        compared[0].is_empty(),
        "since_day",
        input.span.since_s / DAY_S,
        "a day after which jobs come",
        "Give an earlier one.",
    )?;
    // Of use alone, which is not asked here.
    let num_gpus = u32::try_from(input.workload.cluster.num_gpus()).unwrap_or(u32::MAX);
    let parts = |jobs: &[JobOutcome], of: fn(&JobOutcome) -> f64| parts(jobs, input.span, of);
    let (jcts, waits) = (
        parts(&compared[0], JobOutcome::jct_s),
        parts(&compared[0], wait_s),
    );
    let rows = policies.iter().zip(&compared).map(|(policy, jobs)| {
        let metrics = Metrics::of(jobs, num_gpus);
        let own = parts(jobs, JobOutcome::jct_s);
        let over = |own: &[f64], site: &[f64]| {
            Ratio::of_sums(&own.iter().copied().zip(site.iter().copied()).collect::<Vec<_>>())
        };
        UnderRow {
            policy: policy.name().to_owned(),
            avg_jct_s: metrics.avg_jct_s,
            p99_jct_s: metrics.p99_jct_s,
            avg_wait_s: mean(&jobs.iter().map(wait_s).collect::<Vec<_>>()),
            avg_slowdown: metrics.avg_slowdown,
            fairness: metrics.fairness,
            jct: over(&own, &jcts),
            wait: over(&parts(jobs, wait_s), &waits),
            jct_parts_s: own,
        }
    });
    let seen: Vec<f64> = input
        .workload
        .jobs
        .iter()
        .filter(|job| job.submit.as_secs_f64() >= input.span.since_s)
        .filter_map(|job| {
            Some(
                (job.observed.as_deref()?.start - job.submit)
                    .as_secs_f64()
                    .max(0.0),
            )
        })
        .collect();
    Ok(Under {
        span: input.span,
        num_jobs: compared[0].len(),
        observed_wait_s: (!seen.is_empty()).then(|| mean(&seen)),
        rows: rows.collect(),
    })
}

/// All heuristics and dealers beside the site's policy; those that decide as another one does here, and those that may not be, are
/// left out.
///
/// # Errors
/// Not in practice.
pub fn candidates_beside(
    workload: &Workload,
    sim: &SimConfig,
    site: &PolicySpec,
) -> Result<Vec<PolicySpec>, Error> {
    let mut all = DOOR.open_all(&[])?;
    let instance = [Instance {
        workload: Arc::new(workload.clone()),
        seed: sim.seed,
    }];
    let same = stand_ins(&all, &instance, sim);
    for dealer in pleach_dealing::ENTRIES {
        all.push(DOOR.open_one(dealer.info.name)?);
    }
    let fits = |policy: &PolicySpec| {
        policy.name() != site.name()
            && !same.contains_key(policy.name())
            && policy.check(sim.capabilities).is_ok()
    };
    Ok(all.into_iter().filter(fits).collect())
}

/// How the jobs of a list go under a policy.
///
/// # Errors
/// A simulation that fails.
pub(crate) fn play(
    workload: &Workload,
    sim: &SimConfig,
    policy: &PolicySpec,
) -> Result<Vec<JobOutcome>, Error> {
    let mut planner = policy.make_planner()?;
    let result = simulate_planner(workload, sim, planner.as_mut());
    let result =
        result.map_err(|error| Error::Failed(format!("{} on {}: {error}", policy.name(), workload.name)))?;
    Ok(result.jobs)
}

/// Time without GPUs, or until the first start where that is longer: a site's delay holds GPUs and is waiting all the same.
pub(crate) fn wait_s(job: &JobOutcome) -> f64 {
    job.wait_s().max(job.first_start_s - job.submit_s)
}

/// Sums over the parts of a span, in the order of time.
pub(crate) fn parts(jobs: &[JobOutcome], span: Span, of: fn(&JobOutcome) -> f64) -> Vec<f64> {
    let mut sums = Vec::new();
    for job in jobs {
        let part = span.part_of(job);
        if sums.len() <= part {
            sums.resize(part + 1, 0.0);
        }
        sums[part] += of(job);
    }
    sums
}
