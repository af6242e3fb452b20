//! When a job would start: what runs and waits at an instant of a site's list, a forecast, and what would be gained by asking for less.

mod alternatives;
mod answers;
mod gains;
mod hindcast;
mod list;
mod page;
mod served;
mod standing;
mod words;

use std::borrow::Cow;

use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{Seed, SimConfig};
use pleach_forecast::case::{Bare, Scene, Subject};
use pleach_forecast::hindcast::{Asked, Now, See};
use pleach_forecast::learn::{Method, RESOLVED_MIN};
use pleach_forecast::past::{Who, size};
use pleach_forecast::record::Present;
use pleach_forecast::replay::Coming;
use pleach_forecast::score::{EIGHTY, LEVELS, MIDDLE, Quantiles};
use pleach_scheduler::{Estimate, Provenance, Time};
use serde::Serialize;

use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::day::DAY_S;
use crate::evaluate::metric::show_seconds;
use crate::progress::{Progress, Watcher};

pub use alternatives::Ask;
pub use answers::{Kept, starts};
pub use gains::Gains;
pub use hindcast::{Hindcast, Row, hindcast};
pub use list::{list_of, recorded};
pub use page::{hindcast_page, page};
pub use served::Served;
use standing::taken_s;

/// Replays of a forecast, and of each earlier one from which it learns.
const REPLAYS: u64 = 100;
const REPLAYS_LEARNED: u64 = 30;
/// Days of the list from which is learned, and forecasts of them at most. *Ours*.
const DAYS: f64 = 28.0;
const LEARNED_MAX: usize = 600;
/// Alternatives that are shown. *Ours*.
const SHOWN: usize = 3;

/// What is asked of a list: `method` is `replay` or `history`, else what the earlier forecasts speak for answers.
#[must_use]
pub fn asked<'a>(
    workload: &'a Workload,
    (sim, policy): (&'a SimConfig, &'a PolicySpec),
    seed: u64,
    method: &str,
) -> Asked<'a> {
    Asked {
        workload,
        sim,
        policy,
        num_replays: REPLAYS_LEARNED,
        seed: Seed(seed),
        method: match method {
            "replay" => Some(Method::Replay),
            "history" => Some(Method::History),
            _ => None,
        },
    }
}

/// A forecast in seconds from the instant on.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// What is asked, in words.
    pub what: String,
    /// The chance to start at once, 0 to 1.
    pub at_once: f64,
    /// Median wait, s.
    pub median_s: f64,
    /// Ends of the 80 % interval, s.
    pub within_s: [f64; 2],
    /// Waits at `levels`, s.
    pub quantiles_s: Quantiles,
}

/// What is answered.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The instant, s of the list.
    pub as_of_s: f64,
    /// The job, and the alternatives that gain most.
    pub forecast: Forecast,
    /// Those, the most gain first.
    pub alternatives: Vec<Forecast>,
    /// Parts of the distribution at which quantiles are stated.
    pub levels: Quantiles,
    /// The method that answers, and whether it was asked for.
    pub method: Method,
    /// Whether no other could.
    pub is_forced: bool,
    /// Earlier forecasts that are resolved, of those that were looked at.
    pub num_resolved: usize,
    /// Part of the last of them whose 80 % interval held, and how many those are.
    pub held: f64,
    /// How many those are.
    pub num_held: usize,
    /// The policy that is replayed.
    pub policy: String,
    /// Root of all draws.
    pub seed: u64,
    /// Jobs that run, jobs that wait, and GPUs that these ask for.
    pub queue: [f64; 3],
    /// GPUs that are free, and all.
    pub gpus: [f64; 2],
    /// Whether it is of a job that waits already.
    pub is_of_waiting: bool,
    /// What is not known here and may change the answer.
    pub not_known: Vec<&'static str>,
}

impl Forecast {
    fn of(what: String, stated: &Quantiles, bare: &Bare) -> Forecast {
        // Where the least stated wait that is none lies bounds the chance that the replays give.
        let zeros = stated.iter().filter(|wait_s| **wait_s == 0.0).count();
        let level = |number: usize, otherwise: f64| LEVELS.get(number).copied().unwrap_or(otherwise);
        let least = if zeros == 0 { 0.0 } else { level(zeros - 1, 0.0) };
        Forecast {
            what,
            at_once: bare.at_once.clamp(least, level(zeros, 1.0)),
            median_s: stated[MIDDLE],
            within_s: [stated[EIGHTY.0], stated[EIGHTY.1]],
            quantiles_s: *stated,
        }
    }
}

/// The record until an instant, with what the forecasts of the weeks before it teach.
fn learned<'a>(
    asked: &Asked<'a>,
    at_s: f64,
    (days, most): (f64, usize),
    see: See<'_>,
    watcher: &Watcher,
) -> Result<Now<'a>, Error> {
    let jobs = &asked.workload.jobs;
    let (from, to) = (
        Time::from_secs_f64((at_s - days * DAY_S).max(0.0)),
        Time::from_secs_f64(at_s),
    );
    let first = jobs.partition_point(|job| job.submit < from);
    let last = jobs.partition_point(|job| job.submit < to);
    let every = (last - first).div_ceil(most).max(1);
    let is_taken = |job: usize| {
        let is_taken = (first..last).contains(&job) && (job - first).is_multiple_of(every);
        is_taken.then(|| watcher.tell(Progress::Step)).is_some()
    };
    let label = "forecasts of jobs that came before";
    Ok(watcher.part(label, (last - first).div_ceil(every), || {
        asked.until_seen(to, is_taken, see)
    })?)
}

/// The instant of an answer, s: what is given, else the end of the list.
///
/// # Errors
/// An instant before the list begins or after it ends.
pub fn instant(workload: &Workload, at_s: Option<f64>) -> Result<f64, Error> {
    let ends = workload
        .jobs
        .iter()
        .filter_map(|job| job.observed.as_deref())
        .map(|seen| seen.start);
    let last = workload.jobs.last().map_or(Time::ZERO, |job| job.submit);
    let last_s = ends.max().unwrap_or(last).max(last).as_secs_f64();
    let last_s = taken_s(workload).unwrap_or(last_s);
    match at_s {
        None => Ok(last_s),
        Some(at_s) if (0.0..=last_s).contains(&at_s) => Ok(at_s),
        Some(at_s) => {
            let allowed = format!("0 to {last_s:.0} s, the time of the list");
            Err(Error::config(
                "at",
                at_s,
                allowed,
                "Leave it out for the end of the list.",
            ))
        }
    }
}

/// When a new job would start.
///
/// # Errors
/// A job that the cluster cannot hold, an instant beyond the list, a policy that cannot decide.
pub fn when(asked: &Asked<'_>, at_s: Option<f64>, ask: &Ask, watcher: &Watcher) -> Result<Answer, Error> {
    let at_s = instant(asked.workload, at_s)?;
    let (classes, asks) = match ask.job {
        None => {
            ask.check(asked.workload)?;
            ask.with_alternatives(asked.workload)
        }
        Some(ref id) => {
            // Whether it waits is known long before what it waits for is.
            let now = asked.until(Time::from_secs_f64(at_s), |_| false)?;
            waiting(asked.workload, &now.present(), id)?;
            (asked.workload.classes.clone(), Vec::new())
        }
    };
    let workload = Workload {
        classes,
        ..asked.workload.clone()
    };
    let asked = &Asked {
        workload: &workload,
        ..*asked
    };
    let now = learned(asked, at_s, (DAYS, LEARNED_MAX), &mut |_, _, _| Ok(()), watcher)?;
    let present = now.present();
    let mut names: Vec<String> = asks.iter().map(|(what, _)| what.clone()).collect();
    let mut that_waits = None;
    if let Some(id) = &ask.job {
        let (number, words) = waiting(&workload, &present, id)?;
        that_waits = Some(number);
        names.push(words);
    }
    let bares = asked.look(&now, |scene| {
        let new = asks.iter().map(|(_, spec)| subject(scene, spec));
        let subjects: Vec<Subject<'_>> = new.chain(that_waits.map(Subject::Waits)).collect();
        scene.bares(&subjects, REPLAYS, asked.seed.child("when", 0))
    })?;
    let method = now.learner.method(asked.method);
    let of =
        |(what, bare): (String, &Bare)| Forecast::of(what, &now.learner.state(bare).1[method as usize], bare);
    let mut found: Vec<Forecast> = names.into_iter().zip(&bares).map(of).collect();
    let forecast = found.remove(0);
    let (held, num_held) = now.learner.held(at_s);
    let waiting_gpus = gpus_of(&workload.jobs, &present.waiting);
    Ok(Answer {
        as_of_s: at_s,
        alternatives: match ask.instead {
            Some(_) => found,
            None => best(&forecast, found),
        },
        forecast,
        levels: LEVELS,
        method,
        is_forced: asked.method.is_some(),
        num_resolved: now.learner.num_resolved(),
        held,
        num_held,
        policy: asked.policy.name().to_owned(),
        seed: asked.seed.0,
        queue: [
            present.running.len() as f64,
            present.waiting.len() as f64,
            waiting_gpus,
        ],
        gpus: [now.free(), workload.cluster.num_gpus() as f64],
        is_of_waiting: ask.job.is_some(),
        not_known: vec!["holds", "dependencies", "reservations", "maintenance windows"],
    })
}

/// GPUs that some jobs ask for.
fn gpus_of(jobs: &[JobSpec], some: &[usize]) -> f64 {
    // Of none the sum is minus zero.
    some.iter().map(|job| jobs[*job].gpus()).sum::<f64>() + 0.0
}

/// The alternatives that gain most, by the median wait.
fn best(asked: &Forecast, mut others: Vec<Forecast>) -> Vec<Forecast> {
    others.retain(|other| other.median_s < asked.median_s || other.at_once > asked.at_once + 0.01);
    others.sort_by(|one, other| {
        let at_once = other.at_once.total_cmp(&one.at_once);
        one.median_s.total_cmp(&other.median_s).then(at_once)
    });
    others.truncate(SHOWN);
    others
}

/// A job that waits by its number among them, and why it waits, in words.
fn waiting(workload: &Workload, present: &Present, id: &str) -> Result<(usize, String), Error> {
    let jobs = &workload.jobs;
    let number = present
        .waiting
        .iter()
        .position(|job| jobs[*job].id == id)
        .ok_or_else(|| {
            let allowed = format!(
                "one of the {} jobs that wait at this instant",
                present.waiting.len()
            );
            Error::config("job", id, allowed, "Give another instant by --at.")
        })?;
    let spec = &jobs[present.waiting[number]];
    let ahead = &present.waiting[..number];
    let gpus = gpus_of(jobs, ahead);
    let since_s = (present.at - spec.submit).as_secs_f64();
    Ok((
        number,
        format!(
            "job {id} of {} GPUs has waited {}, after {} jobs that came before it and ask for {gpus:.0} GPUs",
            spec.num_gpus,
            show_seconds(since_s),
            ahead.len()
        ),
    ))
}

/// A new job at the instant of a scene, with what is believed of it.
fn subject<'a>(scene: &Scene<'a>, spec: &JobSpec) -> Subject<'a> {
    let who = Who {
        user: scene.past.user(spec.user.as_deref()),
        size: size(spec.num_gpus),
        limit_s: spec.estimate_s.unwrap_or(0.0),
    };
    let provenance = scene
        .site
        .estimates
        .first()
        .map_or(Provenance::Predicted, |of| of.provenance);
    let believed_s = scene.past.runs(who, 0.0).at(0.5);
    let value = match provenance {
        Provenance::UserLimit => spec.estimate_s.unwrap_or(86_400.0),
        _ => believed_s,
    };
    let coming = Coming {
        estimate: Estimate { value, provenance },
        submit: scene.present.at,
        run_s: believed_s,
        spec: Cow::Owned(JobSpec {
            submit: scene.present.at,
            ..spec.clone()
        }),
    };
    Subject::New(Box::new(coming), who)
}

impl Answer {
    /// Why plain history answers although `--method` did not ask for it; none where it does not.
    #[must_use]
    pub fn is_short_of_forecasts(&self) -> bool {
        self.num_resolved < RESOLVED_MIN
    }
}
