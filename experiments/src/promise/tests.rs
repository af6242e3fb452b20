//! Months of a synthetic site after a policy went live: as promised, with more to do than promised for, and with a policy that
//! does not decide.

use std::path::Path;

use pleach_env::workload::{Observed, Workload};
use pleach_env::{JobOutcome, Seed};
use pleach_scheduler::{ModelClass, Time};

use super::review::Outcome;
use super::*;
use crate::door::DOOR;
use crate::evaluate::workload_source::WorkloadSource;
use crate::progress::Watcher;

/// A month of jobs as it went under a policy.
fn month(seed: u64, load: f64, policy: &str) -> Workload {
    let source = WorkloadSource {
        num_jobs: Some(4000),
        load: Some(load),
        ..WorkloadSource::of("helios-like")
    };
    let (mut workload, _) = source.workload("helios-like", Seed(seed)).unwrap();
    // As of an imported list: run times are what was seen, wherever jobs ran.
    workload.classes = vec![ModelClass::default()];
    workload.jobs.iter_mut().for_each(|job| job.class = 0);
    let jobs = played(&workload, policy);
    for (job, outcome) in workload.jobs.iter_mut().zip(&jobs) {
        job.observed = Some(Box::new(Observed {
            start: Time::from_secs_f64(outcome.first_start_s),
            end: Some(Time::from_secs_f64(outcome.finish_s)),
            ..Observed::default()
        }));
    }
    workload
}

fn sim() -> SimConfig {
    SchedulingConfig::default().over(&[], true)
}

fn played(workload: &Workload, policy: &str) -> Vec<JobOutcome> {
    play(workload, &sim(), &DOOR.open_one(policy).unwrap()).unwrap()
}

/// What is promised of `sjf` in place of `fifo`, by a month under that.
fn promised() -> Promised {
    let workload = month(1, 0.9, "fifo");
    let [sjf, fifo] = ["sjf", "fifo"].map(|name| DOOR.open_one(name).unwrap());
    promise(&PromiseInput {
        workload: &workload,
        sim: &sim(),
        policy: (&sjf, "sjf"),
        before: (&fifo, "fifo"),
        span: Span::since(&workload, 0.0),
        world: &World::default(),
    })
    .unwrap()
}

fn reviewed(promise: &Promised, workload: &Workload) -> Review {
    let input = ReviewInput {
        promise,
        folder: Path::new(""),
        workload,
        since_s: 0.0,
        margin: 0.2,
    };
    review(&input, &Watcher::silent()).unwrap()
}

#[test]
fn a_month_as_promised_keeps_the_promise_and_worse_ones_break_it_with_their_causes() {
    let promise = promised();
    assert_eq!(promise.wait_factor, 1.0, "the site is as its twin");
    assert_eq!(promise.check(), Ok(()));
    let text = serde_json::to_string(&promise).unwrap();
    assert_eq!(serde_json::from_str::<Promised>(&text).unwrap(), promise);

    let kept = reviewed(&promise, &month(1, 0.9, "sjf"));
    println!("{}", page(&kept).text());
    assert_eq!((kept.outcome, kept.num_unknown), (Outcome::Kept, 0));
    // The twin is the site here, so pairs of days have no spread.
    let wait = kept.paired.wait.unwrap();
    assert!(
        (wait.mean - 1.0).abs() < 1e-9 && wait.low.unwrap() > 0.999,
        "{wait:?}"
    );
    assert!(
        kept.line().starts_with("sjf keeps its promise"),
        "{}",
        kept.line()
    );

    let heavy = reviewed(&promise, &month(1, 1.6, "sjf"));
    println!("{}", page(&heavy).text());
    assert_eq!(heavy.outcome, Outcome::Broken);
    assert!(
        heavy.line().contains("there was more to do than promised for"),
        "{}",
        heavy.line()
    );
    assert!(
        heavy.paired.gain_wait.unwrap().mean < 1.0,
        "it is better than fifo all the same"
    );

    let other = reviewed(&promise, &month(1, 0.9, "fifo"));
    println!("{}", page(&other).text());
    assert_eq!(other.outcome, Outcome::Broken);
    assert!(
        other.line().contains("the policy does not decide"),
        "{}",
        other.line()
    );
    assert!(other.rows[0].is_broken == Some(true) && other.rows.len() > 4);
    assert!(other.paired.wait.unwrap().low.unwrap() > 1.0);
}

#[test]
fn a_few_days_are_too_early_and_a_list_without_ends_is_refused() {
    let promise = promised();
    let mut workload = month(1, 0.9, "sjf");
    workload.jobs.truncate(90);
    let early = reviewed(&promise, &workload);
    assert_eq!(early.outcome, Outcome::TooEarly);
    assert!(
        early.line().contains("100 on 7 days are the least"),
        "{}",
        early.line()
    );
    for job in &mut workload.jobs {
        job.observed = None;
    }
    let input = ReviewInput {
        promise: &promise,
        folder: Path::new(""),
        workload: &workload,
        since_s: 0.0,
        margin: 0.2,
    };
    let said = review(&input, &Watcher::silent()).unwrap_err().to_string();
    assert!(
        said.contains("since_day = 0") && said.contains("Start and End"),
        "{said}"
    );
}
