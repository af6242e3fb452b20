//! What is free of a twin, fitted on the first half of a list and judged on the second: which of some plain policies the site's
//! scheduler is most like, what it believes of run times, and how long a job that could start at once waits there anyway.
//!
//! One coordinate after the other, and the policies again with the delay: a dozen simulations. The loss of a setting is how
//! far its mean wait is from the observed one, as the absolute logarithm of their ratio with a minute added to both, 1 less the
//! rank correlation of the waits, and 1 less the part of the site's starts that it explains: waits alone take a policy that is as
//! busy as the site's for it. *Ours.* A setting that is given is not fitted.

use pleach_env::batch_system::BatchSystem;
use pleach_env::workload::Workload;
use pleach_env::workload::import::import;
use pleach_env::{EnvConfig, JobOutcome, SimConfig, WorkloadConfig};
use pleach_scheduler::ActionKind;
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::portable_math::ln;
use serde::{Deserialize, Serialize};

use super::under::play;
use super::{Explained, Pair, SHORT_S, Trust, Twin, agreement, explained, is_record, pairs};
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::estimate_source::EstimateSource;
use crate::evaluate::run::in_parallel;
use crate::evaluate::stats::quantile;
use crate::progress::Watcher;

/// Part of the list's time on which is fitted; the rest judges.
pub const FIT_PART: f64 = 0.5;
/// Waits of jobs that could start at once that are taken for the site's own delay, s, at most. *Assumed.*
const DELAY_MAX_S: f64 = 600.0;

/// Jobs that are looked at before anything is learned.
const DOUBT_JOBS_MAX: usize = 20_000;
/// What a site's scheduler is most often like.
const PLAIN: [&str; 3] = ["easy", "fifo", "fifo-skip"];

/// What is fitted.
#[derive(Clone, Copy, Debug)]
pub struct FitInput<'a> {
    /// The list, with what was observed.
    pub workload: &'a Workload,
    /// The cluster; a delay of its own is not fitted.
    pub sim: &'a SimConfig,
    /// Policies that the site's may be like, at least one.
    pub policies: &'a [PolicySpec],
    /// What may be believed of run times, at least one.
    pub estimates: &'a [EstimateSource],
}

/// What a site may believe of run times: what is given, else time limits where half of the jobs have one, and what ended jobs
/// teach.
#[must_use]
pub fn believed(workload: &Workload, given: Option<EstimateSource>) -> Vec<EstimateSource> {
    if let Some(given) = given {
        return vec![given];
    }
    let limits = workload.jobs.iter().filter(|job| job.estimate_s.is_some());
    match 2 * limits.count() >= workload.jobs.len() {
        true => vec![EstimateSource::User, EstimateSource::History],
        false => vec![EstimateSource::History],
    }
}

/// A warning before anything is learned from a list: that its twin is not believable. None where it is, where no job waits, and
/// where nothing was observed: such a list is no site's import. Of a long list the first 20,000 jobs are looked at.
///
/// # Errors
/// A simulation that fails.
pub fn doubt(workload: &Workload, sim: &SimConfig, watcher: &Watcher) -> Result<Option<String>, Error> {
    if !is_record(workload) {
        return Ok(None);
    }
    let workload = &workload.slice(0, DOUBT_JOBS_MAX);
    let input = FitInput {
        workload,
        sim,
        policies: &DOOR.open_all(&PLAIN.map(str::to_owned))?,
        estimates: &believed(workload, None),
    };
    let (found, jobs) = fit(&input, watcher)?;
    let policy = input.policies.iter().find(|policy| policy.name() == found.policy);
    let policy = policy.ok_or_else(|| Error::Failed("the fitted policy is not there".into()))?;
    let twin = Twin::since(policy, workload, &found.sim(sim), &jobs, found.until_s)?;
    Ok((twin.trust == Trust::No).then(|| {
        format!(
            "{}: {}; `pleach twin --fit` tells more",
            workload.name,
            twin.verdict()
        )
    }))
}

/// The same of the list on which an environment's episodes are. None where they are generated, or where the list cannot be read:
/// the error comes where it is opened.
///
/// # Errors
/// As [`doubt`].
pub fn doubt_of(env: &EnvConfig, watcher: &Watcher) -> Result<Option<String>, Error> {
    let WorkloadConfig::File { path, options, .. } = &env.workload else {
        return Ok(None);
    };
    let Ok((workload, _)) = import(path, options) else {
        return Ok(None);
    };
    doubt(&workload, &env.sim, watcher)
}

/// What is most like the site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The policy.
    pub policy: String,
    /// What is believed of run times.
    pub estimates: EstimateSource,
    /// From the decision to the start of a job, s.
    pub start_delay_s: f64,
    /// Loss on the first half; 0 is a perfect twin.
    pub loss: f64,
    /// Until this time of the list was fitted, s.
    pub until_s: f64,
    /// Simulations.
    pub num_tried: usize,
}

impl Fit {
    /// In words.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "fitted on the first {:.1} days in {} simulations: policy {}, estimates {}, {:.0} s from a decision to a start",
            self.until_s / crate::evaluate::day::DAY_S,
            self.num_tried,
            self.policy,
            self.estimates,
            self.start_delay_s
        )
    }

    /// The simulated cluster with what was fitted.
    #[must_use]
    pub fn sim(&self, own: &SimConfig) -> SimConfig {
        with(own, self.estimates, self.start_delay_s)
    }
}

fn with(own: &SimConfig, estimates: EstimateSource, start_delay_s: f64) -> SimConfig {
    let mut sim = SimConfig {
        estimates: estimates.model(),
        ..own.clone()
    };
    if start_delay_s > 0.0 {
        sim.batch_system = Some(BatchSystem {
            start_delay_s,
            ..BatchSystem::default()
        });
    }
    sim
}

/// Whether starts may come later than their decisions in the simulator: not where jobs share GPUs or mix types.
fn may_be_late(sim: &SimConfig) -> bool {
    sim.capabilities.sharing == Sharing::Off && !sim.capabilities.can(ActionKind::MixTypes)
}

/// How far a simulation is from what was observed.
fn loss(pairs: &[Pair<'_>], explained: Explained) -> f64 {
    let (observed_s, simulated_s, rank) = agreement(pairs);
    let size = ln((observed_s + SHORT_S) / (simulated_s + SHORT_S)).abs();
    size + (1.0 - rank.unwrap_or(0.0)) + (1.0 - explained.part().unwrap_or(1.0))
}

/// A setting that is tried.
#[derive(Clone, Copy, Debug)]
struct Setting<'a> {
    policy: &'a PolicySpec,
    estimates: EstimateSource,
    start_delay_s: f64,
}

/// A setting, its loss and what it makes of the whole list.
type Tried<'a> = (Setting<'a>, f64, Vec<JobOutcome>);

/// Fits; the simulation of the whole list with what was found comes with it.
///
/// # Errors
/// A list of whose first half it is not known of any job when it began; a simulation that fails.
pub fn fit(input: &FitInput<'_>, watcher: &Watcher) -> Result<(Fit, Vec<JobOutcome>), Error> {
    let jobs = &input.workload.jobs;
    let until_s = jobs.last().map_or(0.0, |job| job.submit.as_secs_f64()) * FIT_PART;
    if !is_record(input.workload) {
        return Err(super::nothing_observed(input.workload));
    }
    let setting = |policy| Setting {
        policy,
        estimates: input.estimates[0],
        start_delay_s: 0.0,
    };
    let mut num_tried = input.policies.len();
    let policies = input.policies.iter().map(setting).collect();
    let first = best_of(input, until_s, policies, watcher)?;
    let mut found = first.ok_or_else(|| Error::Failed("no policy is to be fitted".into()))?;
    let others = input.estimates[1..].iter().map(|own| Setting {
        estimates: *own,
        ..found.0
    });
    let others: Vec<Setting<'_>> = others.collect();
    num_tried += others.len();
    found = better(found, best_of(input, until_s, others, watcher)?);
    let start_delay_s = match input.sim.batch_system {
        Some(_) => 0.0,
        // What the simulator has no delay for.
        None if !may_be_late(input.sim) => 0.0,
        None => delay(&pairs(input.workload, &found.2, (0.0, until_s))),
    };
    if start_delay_s >= 1.0 {
        // A delay can hide which policy it is, so all are tried with it again.
        let delayed = input.policies.iter().map(|policy| Setting {
            policy,
            start_delay_s,
            ..found.0
        });
        let delayed: Vec<Setting<'_>> = delayed.collect();
        num_tried += delayed.len();
        found = better(found, best_of(input, until_s, delayed, watcher)?);
    }
    let (setting, loss, jobs) = found;
    let fit = Fit {
        policy: setting.policy.name().to_owned(),
        estimates: setting.estimates,
        start_delay_s: setting.start_delay_s,
        loss,
        until_s,
        num_tried,
    };
    Ok((fit, jobs))
}

/// The best of some settings by the first half of the list; of those that are equally good the first.
fn best_of<'a>(
    input: &FitInput<'_>,
    until_s: f64,
    tries: Vec<Setting<'a>>,
    watcher: &Watcher,
) -> Result<Option<Tried<'a>>, Error> {
    let early = input.workload.window(0.0, until_s);
    let played = in_parallel("twin", watcher, &tries, |setting| {
        let sim = with(input.sim, setting.estimates, setting.start_delay_s);
        let jobs = play(input.workload, &sim, setting.policy)?;
        let starts = explained::explained(setting.policy, &early, &sim, 0.0)?;
        let starts = starts
            .into_iter()
            .fold(Explained::default(), |sum, (_, of)| sum.with(of));
        Ok((loss(&pairs(input.workload, &jobs, (0.0, until_s)), starts), jobs))
    })?;
    let all = tries.into_iter().zip(played);
    let all = all.map(|(setting, (loss, jobs))| (setting, loss, jobs));
    Ok(all.reduce(|best, next| if next.1 < best.1 { next } else { best }))
}

/// The next where it is better.
fn better<'a>(found: Tried<'a>, next: Option<Tried<'a>>) -> Tried<'a> {
    match next {
        Some(next) if next.1 < found.1 => next,
        _ => found,
    }
}

/// Median observed wait of jobs that start at once in the simulation, s, whole: what the site needs for a start.
fn delay(pairs: &[Pair<'_>]) -> f64 {
    let mut waits: Vec<f64> = pairs
        .iter()
        .filter(|pair| pair.simulated_s < 1.0)
        .map(|pair| pair.observed_s)
        .collect();
    waits.sort_unstable_by(f64::total_cmp);
    let median = quantile(&waits, 0.5).unwrap_or(0.0);
    if median <= DELAY_MAX_S {
        median.round()
    } else {
        0.0
    }
}
