//! A site's list played under a policy and held against what happened there: waits, use and queue, by size, partition, tenant and
//! week; and how far the simulation can be trusted.
//!
//! Only jobs of which it is known when they began are compared ([`pleach_env::workload::Observed`]).
//!
//! What is free of it can be fitted (`fit`), and once it is believable it answers what the same jobs would have met under another
//! policy (`under`).
//!
//! # What is deliberately not here
//! Fitting speeds of GPU types: a list on which fast jobs run on fast nodes does not tell them apart.

mod explained;
mod fit;
mod tables;
mod under;

use std::collections::BTreeMap;

use pleach_env::workload::Workload;
use pleach_env::{JobOutcome, SimConfig};
use pleach_scheduler::Time;
use serde::{Deserialize, Serialize};

use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::stats::{mean, quantile};
use crate::workload_report::sizes::{BUCKETS, bucket};

pub use explained::Explained;
pub use fit::{FIT_PART, Fit, FitInput, believed, doubt, doubt_of, fit};
pub use tables::{plots, sections, under_plot, under_table};
pub use under::{Span, Under, UnderInput, UnderRow, candidates_beside, under};
pub(crate) use under::{parts, play, wait_s};

const WEEK_S: f64 = 7.0 * 86_400.0;
/// Weeks that are shown.
const WEEKS_MAX: usize = 520;
/// Partitions and tenants that are shown, those of the most jobs.
pub(crate) const NAMES_MAX: usize = 12;
/// Waits that no one would call a queue, s. *Assumed*.
const SHORT_S: f64 = 60.0;
/// A mean wait within this factor of the observed one, and ranks that agree so well, are called close. *Assumed*.
const CLOSE: (f64, f64) = (1.25, 0.5);
/// Starts that both the site and the policy make, over those of either, given what was observed, of a twin that is called close:
/// of all, and of each week with so many starts. *Assumed*: the policy `slurm` makes 98 to 100 % of the starts of recorded
/// schedules of a real Slurm, and `easy` 16 to 94 %.
const EXPLAINED: (f64, f64) = (0.9, 0.75);
const WEEK_STARTS_MIN: usize = 20;
/// The same for rough.
const ROUGH: (f64, f64) = (2.0, 0.3);

/// Whether a list says of any job when it began.
#[must_use]
pub fn is_record(workload: &Workload) -> bool {
    workload.jobs.iter().any(|job| job.observed.is_some())
}

/// Waits of some jobs, s; none without jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WaitFigures {
    /// Mean.
    pub mean_s: Option<f64>,
    /// Median.
    pub p50_s: Option<f64>,
    /// 90 % wait no longer.
    pub p90_s: Option<f64>,
}

/// Some jobs, as they were seen and as they are simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// By what they are grouped: `all`, `GPUs`, `partition`, `tenant`.
    pub by: &'static str,
    /// Which.
    pub name: String,
    /// Jobs.
    pub num_jobs: usize,
    /// At the site.
    pub observed: WaitFigures,
    /// In the simulation.
    pub simulated: WaitFigures,
}

/// A week from time 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Week {
    /// GPUs in use over the GPUs of the cluster, at the site and simulated.
    pub use_observed: f64,
    /// Simulated.
    pub use_simulated: f64,
    /// Mean number of jobs that waited.
    pub queue_observed: f64,
    /// Simulated.
    pub queue_simulated: f64,
    /// Starts of the site that the policy makes too, given what was observed.
    pub explained: Explained,
}

/// How far a simulation can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Mean wait and order of the waits are close, and starts are explained week by week.
    Close,
    /// They are of the same size.
    Roughly,
    /// They are not.
    No,
    /// Neither the site nor the simulation has a queue: nothing can be won, and nothing is shown.
    NoQueue,
}

/// A list as it went and as it is simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Twin {
    /// Policy of the simulation.
    pub policy: String,
    /// Jobs of which it is not known when they began.
    pub num_unobserved: usize,
    /// All jobs first.
    pub groups: Vec<Group>,
    /// Week by week.
    pub weeks: Vec<Week>,
    /// Spearman's rank correlation of observed and simulated waits; none where one of them does not vary.
    pub rank_correlation: Option<f64>,
    /// Mean time from the submission of a job to when it was eligible, s: a part of all waits that no policy changes, and none of
    /// those by which the verdict goes.
    pub held_s: f64,
    /// Starts that are explained where the policy is given what was observed before each.
    pub explained: Explained,
    /// The verdict.
    pub trust: Trust,
    /// Core hours that jobs without GPUs held on the nodes and that are not simulated; 0 = none known.
    pub core_hours_without_gpus: f64,
}

/// A job seen both ways.
struct Pair<'a> {
    /// Waits since it was eligible, s.
    observed_s: f64,
    simulated_s: f64,
    /// How long it had been submitted before, s.
    held_s: f64,
    num_gpus: u32,
    partition: &'a str,
    tenant: &'a str,
}

impl Twin {
    /// Holds a simulation of `workload` under a policy against what was seen, of jobs that came at `since_s` or later; weeks are
    /// those of the whole list.
    ///
    /// # Errors
    /// A list of which it is not known of any job when it began; a policy that cannot decide.
    pub fn since(
        policy: &PolicySpec,
        workload: &Workload,
        sim: &SimConfig,
        jobs: &[JobOutcome],
        since_s: f64,
    ) -> Result<Twin, Error> {
        let pairs = pairs(workload, jobs, (since_s, f64::INFINITY));
        if pairs.is_empty() {
            return Err(nothing_observed(workload));
        }
        let (observed_s, simulated_s, rank_correlation) = agreement(&pairs);
        let came = workload
            .jobs
            .iter()
            .filter(|job| job.submit.as_secs_f64() >= since_s);
        let mut weeks = weeks(workload, jobs);
        let mut explained = Explained::default();
        for (at, found) in explained::explained(policy, workload, sim, since_s)? {
            explained = explained.with(found);
            if let Some(week) = weeks.get_mut((at.as_secs_f64() / WEEK_S) as usize) {
                week.explained = week.explained.with(found);
            }
        }
        let trust = match trust(observed_s, simulated_s, rank_correlation) {
            Trust::Close if !is_explained(explained, &weeks) => Trust::Roughly,
            other => other,
        };
        Ok(Twin {
            policy: policy.name().to_owned(),
            num_unobserved: came.count() - pairs.len(),
            groups: groups(&pairs),
            weeks,
            rank_correlation,
            held_s: mean(&pairs.iter().map(|pair| pair.held_s).collect::<Vec<_>>()),
            explained,
            trust,
            core_hours_without_gpus: workload.cluster.seen.core_hours_without_gpus,
        })
    }

    /// What is known of the list and not simulated, in words; empty where the simulation is close without it.
    fn cause(&self) -> String {
        let core_h = self.core_hours_without_gpus;
        match self.trust {
            Trust::No | Trust::Roughly if core_h > 0.0 => format!(
                ". A cause that is known: jobs without GPUs held {core_h:.0} core hours on nodes with GPUs, and none of it is simulated"
            ),
            _ => String::new(),
        }
    }

    /// What the figures mean, in words.
    #[must_use]
    pub fn verdict(&self) -> String {
        let all = &self.groups[0];
        let hours = |figures: &WaitFigures| figures.mean_s.unwrap_or(0.0) / 3600.0;
        let (observed, simulated) = (hours(&all.observed), hours(&all.simulated));
        let told = format!(
            "mean wait {observed:.2} h at the site and {simulated:.2} h simulated under {}, rank correlation {}; given what was observed \
             before each start, {} of starts are explained",
            self.policy,
            self.rank_correlation
                .map_or_else(|| "-".into(), |rank| format!("{rank:.2}")),
            shown(self.explained)
        );
        let held = match self.held_s >= SHORT_S {
            true => format!(
                "; {:.2} h of both waits are from submission to eligibility",
                self.held_s / 3600.0
            ),
            false => String::new(),
        };
        let words = match self.trust {
            Trust::Close => "close: comparisons of policies on this list can be trusted as far as waits go",
            Trust::Roughly => {
                "of the same size: trust the order of policies that are far apart, not small differences"
            }
            Trust::No => {
                "not believable: another policy (--policy), or the site does something that is not simulated (priorities, \
                 limits, reservations, jobs without GPUs, another cluster); learn nothing from it before that is mended"
            }
            Trust::NoQueue => "no job waits: no policy can win anything here",
        };
        format!("{told}{held}. {words}{}", self.cause())
    }
}

/// `93 %`, `-` where there are no starts.
fn shown(explained: Explained) -> String {
    explained
        .part()
        .map_or_else(|| "-".into(), |part| format!("{:.0} %", 100.0 * part))
}

/// Whether starts are explained, of the whole and of each week with enough of them.
fn is_explained(all: Explained, weeks: &[Week]) -> bool {
    let is = |explained: Explained, least: f64| explained.part().is_none_or(|part| part >= least);
    let long = weeks.iter().map(|week| week.explained);
    let mut long = long.filter(|week| week.both + week.site >= WEEK_STARTS_MIN);
    is(all, EXPLAINED.0) && long.all(|week| is(week, EXPLAINED.1))
}

fn nothing_observed(workload: &Workload) -> Error {
    Error::config(
        "workload",
        &workload.name,
        "a list with the column observed_start_s",
        "pleach workload import keeps when jobs began.",
    )
}

/// Jobs that came in a part of the list and of which it is known when they began.
fn pairs<'a>(workload: &'a Workload, jobs: &[JobOutcome], (from_s, to_s): (f64, f64)) -> Vec<Pair<'a>> {
    let seen = workload.jobs.iter().zip(jobs).filter_map(|(job, outcome)| {
        let observed = job.observed.as_deref()?;
        Some(Pair {
            observed_s: (observed.start - job.submit).as_secs_f64().max(0.0),
            simulated_s: outcome.first_start_s - outcome.submit_s,
            held_s: observed.held_s,
            num_gpus: job.num_gpus,
            partition: &observed.partition,
            tenant: &workload.cluster.tenants[usize::from(job.tenant)].name,
        })
        .filter(|_| (from_s..to_s).contains(&outcome.submit_s))
    });
    seen.filter(|pair| pair.simulated_s.is_finite()).collect()
}

/// Mean waits at the site and simulated, s, and the rank correlation of the two.
fn agreement(pairs: &[Pair<'_>]) -> (f64, f64, Option<f64>) {
    let observed: Vec<f64> = pairs.iter().map(|pair| pair.observed_s).collect();
    let simulated: Vec<f64> = pairs.iter().map(|pair| pair.simulated_s).collect();
    let rank = correlation(&ranks(&observed), &ranks(&simulated));
    (mean(&observed), mean(&simulated), rank)
}

fn trust(observed_s: f64, simulated_s: f64, rank: Option<f64>) -> Trust {
    if observed_s < SHORT_S && simulated_s < SHORT_S {
        return Trust::NoQueue;
    }
    let ratio = (observed_s / simulated_s).max(simulated_s / observed_s);
    let within = |(factor, least): (f64, f64)| ratio <= factor && rank.is_some_and(|rank| rank >= least);
    if within(CLOSE) {
        Trust::Close
    } else if within(ROUGH) {
        Trust::Roughly
    } else {
        Trust::No
    }
}

fn groups(pairs: &[Pair<'_>]) -> Vec<Group> {
    let mut groups = vec![group("all", "all".into(), &pairs.iter().collect::<Vec<_>>())];
    for (number, name) in BUCKETS.iter().enumerate() {
        let of: Vec<_> = pairs
            .iter()
            .filter(|pair| bucket(pair.num_gpus) == number)
            .collect();
        groups.push(group("GPUs", (*name).to_owned(), &of));
    }
    for by in ["partition", "tenant"] {
        let name = |pair: &Pair<'_>| {
            if by == "tenant" {
                pair.tenant.to_owned()
            } else {
                pair.partition.to_owned()
            }
        };
        let mut of_name: BTreeMap<String, Vec<&Pair<'_>>> = BTreeMap::new();
        for pair in pairs {
            of_name.entry(name(pair)).or_default().push(pair);
        }
        let mut parts: Vec<_> = of_name.into_iter().filter(|(name, _)| !name.is_empty()).collect();
        parts.sort_by_key(|(_, pairs)| std::cmp::Reverse(pairs.len()));
        groups.extend(
            parts
                .into_iter()
                .take(NAMES_MAX)
                .map(|(name, pairs)| group(by, name, &pairs)),
        );
    }
    groups.retain(|group| group.num_jobs > 0);
    groups
}

fn group(by: &'static str, name: String, pairs: &[&Pair<'_>]) -> Group {
    let figures = |of: fn(&Pair<'_>) -> f64| {
        let mut waits: Vec<f64> = pairs.iter().map(|pair| of(pair)).collect();
        waits.sort_unstable_by(f64::total_cmp);
        WaitFigures {
            mean_s: (!waits.is_empty()).then(|| mean(&waits)),
            p50_s: quantile(&waits, 0.5),
            p90_s: quantile(&waits, 0.9),
        }
    };
    Group {
        by,
        name,
        num_jobs: pairs.len(),
        observed: figures(|pair| pair.held_s + pair.observed_s),
        simulated: figures(|pair| pair.held_s + pair.simulated_s),
    }
}

/// Use and queue of each week. A job is in the queue of a week for the part of it in which it waits (Little's law), and in use
/// for the part in which it runs.
fn weeks(workload: &Workload, jobs: &[JobOutcome]) -> Vec<Week> {
    let last_s = workload.jobs.last().map_or(0.0, |job| job.submit.as_secs_f64());
    let num_weeks = ((last_s / WEEK_S) as usize + 1).min(WEEKS_MAX);
    let mut weeks = vec![Week::default(); num_weeks];
    let capacity = workload.cluster.num_gpus() as f64;
    let mut add = |from_s: f64, to_s: f64, amount: f64, field: fn(&mut Week) -> &mut f64| {
        let first = (from_s.max(0.0) / WEEK_S) as usize;
        for (number, week) in weeks.iter_mut().enumerate().skip(first) {
            let begin_s = number as f64 * WEEK_S;
            let part_s = to_s.min(begin_s + WEEK_S) - from_s.max(begin_s);
            if part_s <= 0.0 {
                break;
            }
            *field(week) += amount * part_s / WEEK_S;
        }
    };
    for (job, outcome) in workload.jobs.iter().zip(jobs) {
        let Some(observed) = job.observed.as_deref() else {
            continue;
        };
        let (gpus, seconds) = (job.gpus() / capacity, Time::as_secs_f64);
        let (submit, start) = (seconds(job.submit), seconds(observed.start));
        let end = observed.end.map_or(start + job.run_time_s, seconds);
        add(submit, start, 1.0, |week| &mut week.queue_observed);
        add(start, end, gpus, |week| &mut week.use_observed);
        add(outcome.submit_s, outcome.first_start_s, 1.0, |week| {
            &mut week.queue_simulated
        });
        add(outcome.first_start_s, outcome.finish_s, gpus, |week| {
            &mut week.use_simulated
        });
    }
    weeks
}

/// Places in ascending order, from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..]
            .iter()
            .take_while(|place| values[**place] == values[order[first]]);
        let next = first + equal.count().max(1);
        let rank = (first + 1 + next) as f64 / 2.0;
        order[first..next].iter().for_each(|place| ranks[*place] = rank);
        first = next;
    }
    ranks
}

/// Pearson's correlation; none where one of the two does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        a.iter()
            .zip(b)
            .map(|(a, b)| of(a - mean_a, b - mean_b))
            .sum::<f64>()
    };
    let spread = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (spread > 0.0).then(|| sum(&|a, b| a * b) / spread)
}

#[cfg(test)]
mod fit_tests;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_places_and_correlate() {
        assert_eq!(ranks(&[30.0, 10.0, 10.0, 20.0]), [4.0, 1.5, 1.5, 3.0]);
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]), Some(1.0));
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn trust_follows_the_size_and_the_order_of_the_waits() {
        assert_eq!(trust(1000.0, 1100.0, Some(0.8)), Trust::Close);
        assert_eq!(trust(1000.0, 1100.0, Some(0.4)), Trust::Roughly);
        assert_eq!(trust(1000.0, 1900.0, Some(0.8)), Trust::Roughly);
        assert_eq!(trust(1000.0, 0.0, None), Trust::No);
        assert_eq!(trust(30.0, 0.0, None), Trust::NoQueue);
    }
}
