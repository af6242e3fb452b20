//! Forecasts of all jobs that wait and of what could be submitted, at one instant: the file that daemons serve.

use pleach_env::workload::Workload;
use pleach_forecast::case::{Bare, Subject};
use pleach_forecast::hindcast::Asked;
use pleach_forecast::learn::Learner;
use pleach_scheduler::Time;
use pleach_site::starts::{self, ROWS_MAX, Request, Starts, VERSION};

use super::{Ask, DAYS, Forecast, LEARNED_MAX, REPLAYS, instant, learned, subject};
use crate::error::Error;
use crate::progress::Watcher;

/// Time after which is learned anew from the forecasts before, s. *Ours*.
const LEARN_S: f64 = 3600.0;
/// Time limits of requests, s. *Ours*.
const TIMES_S: [Option<f64>; 4] = [Some(3600.0), Some(28_800.0), Some(86_400.0), None];

/// What was learned, when, and from a list of which time 0, s.
pub type Kept = Option<(f64, f64, Learner)>;

/// Requests of one to as many GPUs as a job of the list had, in powers of two.
fn asks(workload: &Workload) -> Vec<Ask> {
    let most = workload.jobs.iter().map(|job| job.num_gpus).max();
    let sizes = (0..31)
        .map(|power| 1 << power)
        .take_while(|gpus| Some(*gpus) <= most);
    let all = sizes.flat_map(|gpus| {
        TIMES_S.map(|time_s| Ask {
            gpus,
            time_s,
            instead: Some(Vec::new()),
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
    let known = kept
        .take()
        .filter(|(at, zero, _)| *zero == zero_s && (0.0..LEARN_S).contains(&(at_s - at)));
    let now = match known {
        Some(_) => asked.until(Time::from_secs_f64(at_s), |_| false)?,
        None => learned(asked, at_s, (DAYS, LEARNED_MAX), &mut |_, _, _| Ok(()), watcher)?,
    };
    let (_, _, learner) = kept.insert(known.unwrap_or_else(|| (at_s, zero_s, now.learner.clone())));
    let waiting = now.present().waiting;
    let num_waiting = waiting.len().min(ROWS_MAX);
    let asks = asks(workload);
    let bares = asked.look(&now, |scene| {
        let new = asks
            .iter()
            .map(|ask| subject(scene, &ask.with_alternatives(workload).1.remove(0).1));
        let subjects: Vec<Subject<'_>> = (0..num_waiting).map(Subject::Waits).chain(new).collect();
        scene.bares(&subjects, REPLAYS, asked.seed.child("when", 0))
    })?;
    let method = learner.method(asked.method);
    let of = |bare: &Bare| {
        let of = Forecast::of(String::new(), &learner.state(bare).1[method as usize], bare);
        starts::Forecast {
            at_once: of.at_once,
            median_s: of.median_s,
            within_s: of.within_s,
        }
    };
    let mut found: Vec<starts::Forecast> = bares.iter().map(of).collect();
    let of_requests = found.split_off(num_waiting);
    let ids = waiting.iter().map(|job| workload.jobs[*job].id.clone());
    let request = |(ask, forecast): (&Ask, starts::Forecast)| Request {
        gpus: ask.gpus,
        time_s: ask.time_s,
        forecast,
    };
    let (held, num_held) = learner.held(at_s);
    Ok(Starts {
        version: VERSION,
        made_s: (zero_s + at_s) as i64,
        method: method.name().into(),
        policy: asked.policy.name().into(),
        held,
        num_held: num_held as u64,
        jobs: ids.zip(found).collect(),
        requests: asks.iter().zip(of_requests).map(request).collect(),
    })
}
