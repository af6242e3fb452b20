//! Days in small: searches, steps and pages.

use super::starts::with_reserve;
use super::tuned::{Rule, missed, worth_gpu_h};
use super::*;
use crate::progress::Watcher;
use crate::worlds::{Compared, Comparing, Searching, compare, search};
use std::sync::Arc;

/// Six minutes on one node of eight GPUs.
fn small() -> ServiceSettings {
    ServiceSettings {
        hours: 0.1,
        rate_per_s: 80.0,
        lists: 2,
        nodes: 1,
        gang: 2,
        ..ServiceSettings::default()
    }
}

fn played(settings: ServiceSettings, names: &[&str], watcher: &Watcher) -> Result<Compared, Error> {
    let asked = Comparing {
        policies: names.iter().map(|name| (*name).to_string()).collect(),
        seed: 1,
        pictured: true,
        ..Comparing::default()
    };
    compare(&ServiceWorld::new(settings)?, &asked, watcher)
}

#[test]
fn a_comparison_of_days_tells_steps_whatever_the_autoscaler_is_asked() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let (told, of) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (steps, begun) = (Arc::clone(&told), Arc::clone(&of));
    let watcher = Watcher::new(move |progress| match progress {
        Progress::Begun("service", num) => begun.store(num as usize, Ordering::SeqCst),
        Progress::Step => drop(steps.fetch_add(1, Ordering::SeqCst)),
        _ => {}
    });
    // One that is asked once, at the beginning.
    let long = ServiceSettings {
        hours: 0.5,
        ..small()
    };
    played(long, &["static:replicas=4"], &watcher).unwrap();
    let (told, of) = (told.load(Ordering::SeqCst), of.load(Ordering::SeqCst));
    assert!(of >= 10 && told + 2 >= of, "{told} of {of}");
}

/// What has as little reserve as the hits allow keeps its thresholds but for the factor.
#[test]
fn a_searched_tree_is_priced_and_takes_another_reserve() {
    let asked = Searching {
        simulations: Some(30),
        tune_lists: Some(1),
        judge_lists: Some(2),
        ..Searching::default()
    };
    let settings = ServiceSettings {
        hits_pct: 90.0,
        ..small()
    };
    let mut world = ServiceWorld::new(settings).unwrap();
    let found = search(&mut world, &asked, (5, None), &Watcher::silent()).unwrap();
    assert!(
        world.price_gpu_s() > 0.0 && found.verdict.contains("A miss cost"),
        "{}",
        found.verdict
    );
    assert_ne!(
        with_reserve(&found.tree, 1.5).unwrap().nodes(),
        found.tree.nodes()
    );
    assert_eq!(
        with_reserve(&found.tree, 1.0).unwrap().nodes(),
        found.tree.nodes()
    );
}

#[test]
fn steps_earn_training_less_the_price_of_misses_and_a_day_may_be_left() {
    let mut env = Scaling::new(&small(), 36.0).unwrap();
    assert!(env.step(0).is_err(), "nothing has begun");
    let play = |env: &mut Scaling, seed: u64| {
        env.reset(seed).unwrap();
        let (mut sum, mut steps) = (0.0, 0);
        loop {
            // The last row that is offered: as many as may be, then the fewest.
            let offered = env.rows().mask.iter().filter(|may| **may).count();
            let step = env.step(if steps % 2 == 0 { offered - 1 } else { 0 }).unwrap();
            (sum, steps) = (sum + step.reward, steps + 1);
            if step.is_last {
                let (day, missed) = env.take_day().unwrap();
                return (sum, steps, day, missed);
            }
        }
    };
    let (sum, steps, day, misses) = play(&mut env, 3);
    assert_eq!(
        steps, 23,
        "every 15 s of six minutes, but for the beginning and the end"
    );
    assert!(
        (sum - (day.training_gpu_h - misses / 100.0)).abs() < 1e-9,
        "{sum}"
    );
    assert_eq!(misses, missed(&day));
    assert!((worth_gpu_h(&day, 36.0) - sum).abs() < 1e-9);
    env.reset(4).unwrap();
    env.step(0).unwrap();
    assert_eq!(play(&mut env, 3).2, day, "the day before was left");
    env.reset(1).unwrap();
    let beyond = env.rows().mask.len();
    assert!(env.step(beyond).unwrap_err().to_string().contains("mask"));
}

#[test]
fn a_page_shows_the_first_day_of_each() {
    let found = played(
        small(),
        &["static:replicas=4", "reactive:target=0.7"],
        &Watcher::silent(),
    );
    let html = found.unwrap().report("Autoscalers").html();
    pleach_tests::assert_well_formed(&html);
    for words in [
        "replicas that take requests",
        "GPUs that train",
        "by quarter of an hour",
    ] {
        assert!(html.matches(words).count() >= 2, "{words}");
    }
}

/// Twice as much work as fits beside the replicas: whatever the service leases, jobs of the list lose.
#[test]
fn a_service_runs_beside_a_list_of_jobs_and_a_list_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let (jobs, requests) = (folder.path().join("jobs.csv"), folder.path().join("requests.csv"));
    let rows: String = (0..16).map(|job| format!("{job},0,1,3600\n")).collect();
    std::fs::write(&jobs, format!("job_id,submit_s,num_gpus,runtime_s\n{rows}")).unwrap();
    let rows: String = (0..60).map(|second| format!("{second},400,40\n")).collect();
    std::fs::write(
        &requests,
        format!("arrival_s,prompt_tokens,output_tokens\n{rows}"),
    )
    .unwrap();
    let settings = ServiceSettings {
        jobs: Some(jobs.to_str().unwrap().into()),
        cluster: Some("1x8:H100".into()),
        requests: Some(requests),
        hours: 0.1,
        lists: 1,
        ..ServiceSettings::default()
    };
    let found = played(
        settings,
        &["static:replicas=0", "static:replicas=4"],
        &Watcher::silent(),
    )
    .unwrap();
    let of = |policy: &str, key: &str| found.at[0].results.values(policy, key)[0];
    assert!(
        (of("static:replicas=0", "training_gpu_h") - 0.8).abs() < 1e-9,
        "eight GPUs, six minutes"
    );
    assert!((of("static:replicas=4", "held_gpu_h") - 0.4).abs() < 1e-9);
    assert_eq!(of("static:replicas=4", "num_requests"), 60.0);
}

/// Hours of night have a quarter of the mean rate, hours of the afternoon seven quarters.
#[test]
fn the_days_before_tell_what_is_usual() {
    let bench = MixedBench::new(&small()).unwrap();
    let usual = bench.day(Seed(1), 1.0).unwrap().usual_per_s;
    let mean = |hours: std::ops::Range<usize>| {
        let parts = &usual[4 * hours.start..4 * hours.end];
        parts.iter().sum::<f64>() / parts.len() as f64
    };
    for (hours, expected) in [(0..24, 80.0), (1..3, 20.0), (12..15, 140.0)] {
        let found = mean(hours.clone());
        assert!((found / expected - 1.0).abs() < 0.15, "{hours:?}: {found}");
    }
}

#[test]
fn a_setting_at_the_end_of_what_is_tried_is_named() {
    let rule = Rule::plain();
    assert_eq!(rule.edges(), Vec::<&str>::new());
    assert!(
        rule.text(1.0).starts_with("reactive:target=0.74:down=180:"),
        "{}",
        rule.text(1.0)
    );
    let steps = |rung: isize| rule.moved(&[(0, rung)]);
    let lowest = (-100..0).find_map(steps).unwrap();
    assert_eq!(lowest.edges(), ["target"]);
    assert!(lowest.moved(&[(0, -1)]).is_none());
    assert_eq!(
        rule.staffed().seasonal().edges(),
        Vec::<&str>::new(),
        "no reserve of roots is a limit"
    );
}

/// Settings by name have no ranges of their own: with gangs of 0 GPUs, drawing never ended.
#[test]
fn sizes_that_cannot_be_are_refused_however_they_come() {
    type Change = fn(&mut ServiceSettings);
    let cases: [(&str, Change); 4] = [
        ("gang = 0", |config| config.gang = 0),
        ("gang = 9", |config| config.gang = 9),
        ("nodes = 4294967295", |config| config.nodes = u32::MAX),
        ("gpus_per_node = 0", |config| config.gpus_per_node = 0),
    ];
    for (words, change) in cases {
        let mut config = small();
        change(&mut config);
        let Err(error) = MixedBench::new(&config) else {
            panic!("{words} is taken");
        };
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// A model of 70B on four GPUs beside one gang of four, on two nodes of four: two replicas leave it nothing.
#[test]
fn a_replica_of_four_gpus_takes_them_all_from_training() {
    let config = ServiceSettings {
        model: "llama-3-70b".into(),
        replica_gpus: 4,
        nodes: 2,
        gpus_per_node: 4,
        gang: 4,
        rate_per_s: 2.0,
        ..small()
    };
    let names = ["static:replicas=0", "static:replicas=1", "static:replicas=9"];
    let found = played(config.clone(), &names, &Watcher::silent()).unwrap();
    let held: Vec<(f64, f64)> = names
        .iter()
        .map(|name| {
            let of = |key: &str| found.at[0].results.values(name, key)[0];
            (of("serving_gpu_h"), of("held_gpu_h"))
        })
        .collect();
    for ((serving, training), expected) in held.into_iter().zip([(0.0, 0.4), (0.4, 0.4), (0.8, 0.0)]) {
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(
            near(serving, expected.0) && near(training, expected.1),
            "{serving} {training}"
        );
    }
    let odd = ServiceSettings {
        replica_gpus: 3,
        ..config
    };
    let Err(error) = MixedBench::new(&odd) else {
        panic!("three GPUs are taken");
    };
    assert!(error.to_string().contains("replica_gpus = 3"), "{error}");
}
