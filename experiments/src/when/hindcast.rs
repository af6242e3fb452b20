//! How good forecasts of the last weeks would have been, each with what was known when its job came.

use pleach_forecast::case::{SHORT_S, Scene};
use pleach_forecast::learn::{Case, Learner, Method};
use pleach_forecast::score::{EIGHTY, LEVELS, MIDDLE, Quantiles, holds, log1, pinball};
use pleach_scheduler::portable_math::{exp, ln};
use serde::Serialize;

use super::gains::{GANGS_MAX, Gains};
use super::standing::LATER_S;
use super::{Asked, DAYS, instant, learned};
use crate::error::Error;
use crate::evaluate::day::DAY_S;
use crate::evaluate::stats::{Ratio, quantile};
use crate::progress::Watcher;

/// Forecasts that are made, of twice the days that are scored: the first half teaches.
const FORECASTS_MAX: usize = 1200;
/// Ends of the buckets of a stated median, s.
const BUCKETS: [(&str, f64); 5] = [
    ("at once", 0.0),
    ("to 30 min", 1800.0),
    ("to 4 h", 14_400.0),
    ("to 24 h", 86_400.0),
    ("more", f64::INFINITY),
];
/// Forecasters: those without a model, then ours.
const NAMES: [(&str, &str); 7] = [
    ("B0", "past waits of the size"),
    ("B1", "replay by time limits"),
    ("B2", "replay by median run times"),
    ("B3", "trees on the state of the queue"),
    ("bare", "replays without correction"),
    ("replay", "replays, corrected"),
    ("answer", "what is answered"),
];
/// Those that a site has without us.
const BASELINES: usize = 4;

/// A forecaster's scores.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Short name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Mean pinball loss of log(1 + s).
    pub loss_log: f64,
    /// Mean pinball loss, s.
    pub loss_s: f64,
    /// Loss over that of the best baseline in logarithms, with the interval of drawing days.
    pub over_best_log: Option<Ratio>,
    /// The same in seconds.
    pub over_best_s: Option<Ratio>,
    /// Part of the jobs that had to wait whose 80 % interval held.
    pub held: f64,
    /// Median width of those intervals, s.
    pub width_s: f64,
}

/// Jobs of which a like wait was stated.
#[derive(Clone, Debug, Serialize)]
pub struct Bucket {
    /// Stated median.
    pub stated: &'static str,
    /// Jobs.
    pub num_jobs: usize,
    /// Part that started at once.
    pub at_once: f64,
    /// Quartiles of the waits, s.
    pub waits_s: [f64; 3],
    /// Median factor by which wait and stated median, each with a minute, differ.
    pub factor: f64,
    /// Part whose 80 % interval held.
    pub held: f64,
}

/// Scores of the last weeks.
#[derive(Clone, Debug, Serialize)]
pub struct Hindcast {
    /// The policy that was replayed.
    pub policy: String,
    /// Until when, s of the list.
    pub until_s: f64,
    /// Forecasts that are scored, the days on which they were made, those jobs that had to wait, and those that waited.
    pub num_forecasts: usize,
    /// Days.
    pub num_days: usize,
    /// Had to wait, as a replay or the limits said when they came.
    pub num_must_wait: usize,
    /// Part of the jobs that waited.
    pub waited: f64,
    /// Forecasts by what answered. `[history, trees, replay]`
    pub answered: [usize; 3],
    /// Forecasters.
    pub rows: Vec<Row>,
    /// By the stated median.
    pub buckets: Vec<Bucket>,
    /// What asking for less would have won; none of a record.
    pub gains: Option<Gains>,
    /// Part of the waits at or below each stated quantile of the answers. `[level]`
    pub reliability: Vec<(f64, f64)>,
}

/// The forecasters' quantiles of a case, in the order of [`NAMES`].
fn stated(case: &Case, of: usize) -> Quantiles {
    match of {
        0 => case.stated[Method::History as usize],
        1 => [case.bare.by_limits_s; LEVELS.len()],
        2 => [case.bare.by_medians_s; LEVELS.len()],
        3 => case.stated[Method::Trees as usize],
        4 => case.bare.replay,
        5 => case.stated[Method::Replay as usize],
        _ => *case.answer(),
    }
}

/// Scores; with what asking for less would have won where the policy itself made the starts.
///
/// # Errors
/// A list without so many days, an instant beyond it, a policy that cannot decide.
pub fn hindcast(
    asked: &Asked<'_>,
    at_s: Option<f64>,
    is_played: bool,
    watcher: &Watcher,
) -> Result<Hindcast, Error> {
    // After its last job a list may go on for weeks.
    let last = asked.workload.jobs.last().map(|job| job.submit.as_secs_f64());
    let until_s = instant(asked.workload, at_s.or(last))?;
    let since_s = (until_s - DAYS * DAY_S).max(until_s / 2.0);
    let (mut gains, mut num_gangs) = (Gains::default(), 0);
    let mut see = |scene: &Scene<'_>, learner: &Learner, case: &Case| {
        let jobs = &asked.workload.jobs;
        // Behind it none came at its instant: what is asked is asked last.
        let is_last = jobs
            .get(case.job + 1)
            .is_none_or(|next| next.submit > jobs[case.job].submit);
        let is_gang = is_last && jobs[case.job].num_gpus > 1 && case.bare.must_wait();
        num_gangs += usize::from(is_played && case.at_s >= since_s && is_gang);
        match num_gangs > 2 * gains.num_gangs && gains.num_gangs < GANGS_MAX {
            true => gains.play(scene, (learner, asked.method), case),
            false => Ok(()),
        }
    };
    let now = learned(asked, until_s, (2.0 * DAYS, FORECASTS_MAX), &mut see, watcher)?;
    let cases: Vec<&Case> = now
        .learner
        .cases()
        .iter()
        .filter(|case| case.at_s >= since_s && case.wait_s < LATER_S)
        .collect();
    Error::refuse_if(
        cases.is_empty(),
        "at",
        until_s,
        "an instant after which jobs came",
        "A list of some weeks says how good forecasts are.",
    )?;
    let must: Vec<&Case> = cases
        .iter()
        .copied()
        .filter(|case| case.bare.must_wait())
        .collect();
    let rows = rows(&cases, &must);
    let reliability = LEVELS.iter().enumerate().map(|(level, part)| {
        let below = cases
            .iter()
            .filter(|case| case.wait_s <= case.answer()[level])
            .count();
        (*part, below as f64 / cases.len() as f64)
    });
    Ok(Hindcast {
        policy: asked.policy.name().to_owned(),
        until_s,
        num_forecasts: cases.len(),
        num_days: days(&cases).len(),
        num_must_wait: must.len(),
        waited: part(&cases, |case| case.wait_s > 0.0),
        answered: Method::ALL.map(|method| cases.iter().filter(|case| case.method == method).count()),
        rows,
        buckets: buckets(&cases),
        gains: Some(gains).filter(|gains| gains.num_gangs > 0),
        reliability: reliability.collect(),
    })
}

fn part(cases: &[&Case], is: impl Fn(&Case) -> bool) -> f64 {
    cases.iter().filter(|case| is(case)).count() as f64 / cases.len().max(1) as f64
}

/// Cases by the days on which they came.
fn days<'a, 'b>(cases: &'b [&'a Case]) -> Vec<&'b [&'a Case]> {
    let day = |case: &Case| (case.at_s / DAY_S) as u64;
    cases.chunk_by(|one, next| day(one) == day(next)).collect()
}

fn rows(cases: &[&Case], must: &[&Case]) -> Vec<Row> {
    let days = days(cases);
    // Sums of each day. `[forecaster][day]`
    let losses = |scale: fn(f64) -> f64| -> Vec<Vec<f64>> {
        let of_day = |of: usize, day: &[&Case]| -> f64 {
            day.iter()
                .map(|case| pinball(&stated(case, of), case.wait_s, scale))
                .sum()
        };
        let of = |of: usize| days.iter().map(|day| of_day(of, day)).collect();
        (0..NAMES.len()).map(of).collect()
    };
    let (log, seconds) = (losses(log1), losses(|wait_s| wait_s));
    let sum = |of: &[f64]| of.iter().sum::<f64>();
    let best = |all: &[Vec<f64>]| {
        let baselines = (0..BASELINES).min_by(|one, other| sum(&all[*one]).total_cmp(&sum(&all[*other])));
        baselines.unwrap_or(0)
    };
    let over = |all: &[Vec<f64>], of: usize| {
        let pairs = all[of].iter().copied().zip(all[best(all)].iter().copied());
        Ratio::of_sums(&pairs.collect::<Vec<_>>())
    };
    let row = |(of, (name, about)): (usize, &(&'static str, &'static str))| {
        let mut widths: Vec<f64> = must
            .iter()
            .map(|case| stated(case, of)[EIGHTY.1] - stated(case, of)[EIGHTY.0])
            .collect();
        widths.sort_unstable_by(f64::total_cmp);
        Row {
            name,
            about,
            loss_log: sum(&log[of]) / cases.len() as f64,
            loss_s: sum(&seconds[of]) / cases.len() as f64,
            over_best_log: over(&log, of),
            over_best_s: over(&seconds, of),
            held: part(must, |case| holds(&stated(case, of), case.wait_s, EIGHTY)),
            width_s: quantile(&widths, 0.5).unwrap_or(0.0),
        }
    };
    NAMES.iter().enumerate().map(row).collect()
}

fn buckets(cases: &[&Case]) -> Vec<Bucket> {
    let mut from_s = f64::NEG_INFINITY;
    let mut found = Vec::new();
    for (stated, to_s) in BUCKETS {
        let is_in = |case: &&&Case| case.answer()[MIDDLE] > from_s && case.answer()[MIDDLE] <= to_s;
        let of: Vec<&Case> = cases.iter().filter(is_in).copied().collect();
        let mut waits: Vec<f64> = of.iter().map(|case| case.wait_s).collect();
        waits.sort_unstable_by(f64::total_cmp);
        let log = |wait_s: f64| ln(wait_s + SHORT_S);
        let logs = of
            .iter()
            .map(|case| (log(case.wait_s) - log(case.answer()[MIDDLE])).abs());
        let mut logs: Vec<f64> = logs.collect();
        logs.sort_unstable_by(f64::total_cmp);
        if !of.is_empty() {
            found.push(Bucket {
                stated,
                num_jobs: of.len(),
                at_once: part(&of, |case| case.wait_s == 0.0),
                waits_s: [0.25, 0.5, 0.75].map(|part| quantile(&waits, part).unwrap_or(0.0)),
                factor: exp(quantile(&logs, 0.5).unwrap_or(0.0)),
                held: part(&of, |case| holds(case.answer(), case.wait_s, EIGHTY)),
            });
        }
        from_s = to_s;
    }
    found
}
