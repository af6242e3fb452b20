//! Forecasts of all jobs that wait and of what could be submitted, at one instant: the file that daemons serve. And lists that were
//! taken while their jobs wait and run.

use pleach_env::workload::{Observed, Workload};
use pleach_forecast::case::{Scene, Subject};
use pleach_forecast::hindcast::Asked;
use pleach_forecast::learn::{Learner, Method};
use pleach_forecast::replay::Site;
use pleach_scheduler::Time;
use pleach_site::starts::{self, ROWS_MAX, Request, Starts, VERSION};

use super::{Ask, DAYS, Forecast, LEARNED_MAX, REPLAYS, instant, learned, subject};
use crate::error::Error;
use crate::progress::Watcher;

/// Time after which is learned anew from the forecasts before, s. *Ours*.
const LEARN_S: f64 = 3600.0;
/// Time limits of requests, s. *Ours*.
const TIMES_S: [f64; 3] = [3600.0, 28_800.0, 86_400.0];
/// Time after the instant of a list at which what waits starts and what runs ends: after all that is asked.
const LATER_S: f64 = 400.0 * 86_400.0;

/// What was learned, when, and from a list of which time 0, s.
pub type Kept = Option<(f64, f64, Learner)>;

/// A list with all that waited or ran when it was taken as if it started and ended long after.
#[must_use]
pub fn standing(mut workload: Workload) -> Workload {
    let Some(until_s) = workload.cluster.seen.until_s() else {
        return workload;
    };
    let later = Time::from_secs_f64(until_s + LATER_S);
    for job in &mut workload.jobs {
        let observed = job.observed.get_or_insert_with(|| {
            Box::new(Observed {
                start: later,
                end: None,
                nodes: String::new(),
                partition: String::new(),
                qos: String::new(),
                held_s: 0.0,
            })
        });
        observed.end.get_or_insert(later);
    }
    workload
}

/// Requests of one to as many GPUs as a job of the list had, in powers of two, with the usual limits where the list has limits.
fn asks(workload: &Workload) -> Vec<Ask> {
    let jobs = || workload.jobs.iter();
    let most = jobs().map(|job| job.num_gpus).max().unwrap_or(1);
    let has_limits = jobs().any(|job| job.estimate_s.is_some());
    let times = TIMES_S.map(Some);
    let times = if has_limits { &times[..] } else { &[None][..] };
    let sizes = (0..31).map(|power| 1 << power).take_while(|gpus| *gpus <= most);
    let all = sizes.flat_map(|gpus| {
        times.iter().map(move |time_s| Ask {
            gpus,
            time_s: *time_s,
            ..Ask::default()
        })
    });
    all.filter(|ask| ask.check(workload).is_ok()).collect()
}

/// All forecasts at an instant. `kept` is what was learned before, and is learned anew each hour.
///
/// # Errors
/// A list without dates, an instant beyond it, a policy that cannot decide.
pub fn starts(
    asked: &Asked<'_>,
    at_s: Option<f64>,
    kept: &mut Kept,
    watcher: &Watcher,
) -> Result<Starts, Error> {
    let workload = asked.workload;
    let at_s = instant(workload, at_s)?;
    let zero_s = workload.cluster.seen.time_0_unix_s.ok_or_else(|| {
        let hint = "Forecasts that are served have a date.";
        Error::config("answers", &workload.name, "a list with dates", hint)
    })?;
    let is_known =
        |(at, zero, _): &(f64, f64, Learner)| *zero == zero_s && (0.0..LEARN_S).contains(&(at_s - at));
    let now = match kept.as_ref().is_some_and(is_known) {
        true => asked.until(Time::from_secs_f64(at_s), |_| false)?,
        false => learned(asked, at_s, (DAYS, LEARNED_MAX), watcher)?,
    };
    let (_, _, learner) = match kept.take().filter(is_known) {
        Some(known) => kept.insert(known),
        None => kept.insert((at_s, zero_s, now.learner.clone())),
    };
    let present = now.present();
    let site = Site {
        workload,
        sim: asked.sim,
        policy: asked.policy,
        estimates: now.estimates(),
    };
    let scene = Scene {
        site: &site,
        past: &now.past,
        present: &present,
        free: now.free(),
    };
    let asks = asks(workload);
    let new = asks
        .iter()
        .map(|ask| ask.with_alternatives(workload).1.remove(0).1);
    let num_waiting = present.waiting.len().min(ROWS_MAX);
    let mut subjects: Vec<Subject<'_>> = (0..num_waiting).map(Subject::Waits).collect();
    subjects.extend(new.map(|spec| subject(&scene, &spec)));
    let waits = scene.waits(&subjects, REPLAYS, asked.seed.child("when", 0))?;
    let method = learner.method(asked.method);
    let mut found = Vec::new();
    for (subject, waits) in subjects.iter().zip(waits) {
        let bare = scene.bare_of(subject, waits)?;
        let (_, stated) = learner.state(&bare);
        let of = Forecast::of(String::new(), &stated[method as usize], &bare);
        found.push(starts::Forecast {
            at_once: of.at_once,
            median_s: of.median_s,
            within_s: of.within_s,
        });
    }
    let of_requests = found.split_off(num_waiting);
    let ids = present.waiting.iter().map(|job| workload.jobs[*job].id.clone());
    let requests = asks.iter().zip(of_requests).map(|(ask, forecast)| Request {
        gpus: ask.gpus,
        time_s: ask.time_s,
        forecast,
    });
    let (held, num_held) = learner.held(at_s);
    let name = match method {
        Method::History => "history",
        Method::Trees => "trees",
        Method::Replay => "replay",
    };
    Ok(Starts {
        version: VERSION,
        made_s: (zero_s + at_s) as i64,
        method: name.to_owned(),
        policy: asked.policy.name().to_owned(),
        held,
        num_held: num_held as u64,
        jobs: ids.zip(found).collect(),
        requests: requests.collect(),
    })
}
