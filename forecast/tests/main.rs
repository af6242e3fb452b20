//! Oracles of forecasts: what the truth says, the same bytes from the same seed, and what is never said.

#![allow(clippy::unwrap_used)]

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{Seed, SimConfig};
use pleach_forecast::boost::{Boosted, quantile};
use pleach_forecast::case::{Bare, Subject};
use pleach_forecast::draws::Draws;
use pleach_forecast::hindcast::{Asked, wait_of};
use pleach_forecast::learn::Method;
use pleach_forecast::record::played;
use pleach_forecast::replay::DAYS_MAX_S;
use pleach_policies::{Door, PolicySpec};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use rand::Rng as _;

fn policy(name: &str) -> PolicySpec {
    Door::SIMULATOR.open_one(name).unwrap()
}

/// A busy list on four nodes of eight GPUs that a policy has played, with limits of one and a half times the run time.
fn list(name: &str, num_jobs: usize, seed: u64) -> (Workload, SimConfig) {
    let mut random = Seed(seed).stream("list", 0);
    let mut below = |most: u64| random.next_u64() % most;
    let mut submit_s = 0.0;
    let job = |number: usize| {
        submit_s += below(1200) as f64;
        let gpus = [1, 1, 2, 4, 8, 8, 16][below(7) as usize];
        let run_s = 60.0 + (below(140) * below(140)) as f64;
        JobSpec {
            estimate_s: Some(run_s * 1.5),
            user: Some(format!("u{}", below(3))),
            ..JobSpec::new(format!("j{number}"), Time::from_secs_f64(submit_s), gpus, run_s)
        }
    };
    let workload = Workload {
        name: "busy".into(),
        cluster: ClusterSpec::uniform(4, 8, 4),
        classes: vec![ModelClass::default()],
        jobs: (0..num_jobs).map(job).collect(),
    };
    let sim = SimConfig {
        estimates: EstimateModel::UserLimit { default_s: 86_400.0 },
        ..SimConfig::default()
    };
    (played(workload, &sim, &policy(name)).unwrap(), sim)
}

fn asked<'a>(workload: &'a Workload, sim: &'a SimConfig, policy: &'a PolicySpec) -> Asked<'a> {
    Asked {
        workload,
        sim,
        policy,
        num_replays: 10,
        seed: Seed(3),
        method: None,
    }
}

#[test]
fn with_true_run_times_and_arrivals_a_replay_is_the_truth_job_by_job() {
    for name in ["easy", "fifo", "fifo-skip"] {
        let (workload, sim) = list(name, 300, 5);
        let policy = policy(name);
        let asked = asked(&workload, &sim, &policy);
        let mut num_compared = 0;
        for number in [60, 120, 180, 240] {
            let instant = workload.jobs[number].submit;
            let now = asked.until(instant, |_| false).unwrap();
            asked.look(&now, |scene| {
                let truth = Draws::truth(scene.site, scene.present);
                let targets: Vec<usize> = (0..scene.present.waiting.len()).collect();
                let starts_s = scene
                    .site
                    .replay(scene.present, &truth, 0, &targets, DAYS_MAX_S)
                    .unwrap();
                for (job, start_s) in scene.present.waiting.iter().zip(starts_s) {
                    let seen = workload.jobs[*job].observed.as_deref().unwrap();
                    let start = instant + Time::from_secs_f64(start_s);
                    assert!(
                        (start - seen.start).0.abs() <= 2,
                        "{name}: job {job}: {start:?}, {seen:?}"
                    );
                    num_compared += 1;
                }
            });
        }
        assert!(num_compared > 20, "{name}: only {num_compared} jobs waited");
    }
}

#[test]
fn the_same_seed_gives_the_same_forecast_on_any_number_of_threads() {
    let (workload, sim) = list("easy", 200, 6);
    let policy = policy("easy");
    let asked = asked(&workload, &sim, &policy);
    let instant = workload.jobs[150].submit;
    let bare = |num_threads: usize| -> Vec<Bare> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads)
            .build()
            .unwrap();
        pool.install(|| {
            let now = asked.until(instant, |job| job % 5 == 0).unwrap();
            now.learner.cases().iter().map(|case| case.bare.clone()).collect()
        })
    };
    let (one, four) = (bare(1), bare(4));
    assert!(one.len() > 20);
    assert_eq!(
        serde_json::to_string(&one).unwrap(),
        serde_json::to_string(&four).unwrap()
    );
}

#[test]
fn nothing_that_is_known_later_alone_changes_a_forecast() {
    for estimates in [
        EstimateModel::Oracle,
        EstimateModel::UserLimit { default_s: 86_400.0 },
        EstimateModel::HISTORY,
    ] {
        let (workload, mut sim) = list("easy", 200, 6);
        sim.estimates = estimates;
        let instant = workload.jobs[150].submit;
        // Whatever has not ended by then runs ten times as long, and what comes later asks for other GPUs.
        let mut other = workload.clone();
        for job in &mut other.jobs {
            let observed = job.observed.as_mut().unwrap();
            if observed.end.unwrap() > instant {
                job.run_time_s *= 10.0;
                observed.end = Some(observed.end.unwrap() + Time::from_secs_f64(job.run_time_s));
            }
            if job.submit > instant {
                job.num_gpus = 3;
            }
        }
        let policy = policy("easy");
        let bares = |workload: &Workload| {
            let asked = asked(workload, &sim, &policy);
            let now = asked.until(instant, |job| job % 10 == 0).unwrap();
            let mut found: Vec<Bare> = now.learner.cases().iter().map(|case| case.bare.clone()).collect();
            asked.look(&now, |scene| {
                let all = 0..scene.present.waiting.len();
                found.extend(
                    scene
                        .bares(&all.map(Subject::Waits).collect::<Vec<_>>(), 5, Seed(1))
                        .unwrap(),
                );
            });
            found
        };
        let (one, two) = (bares(&workload), bares(&other));
        assert!(one.len() > 20, "{estimates:?}");
        assert_eq!(
            serde_json::to_string(&one).unwrap(),
            serde_json::to_string(&two).unwrap(),
            "{estimates:?}"
        );
    }
}

#[test]
fn a_renewed_forecast_never_lies_in_the_past() {
    let (workload, sim) = list("easy", 300, 5);
    let policy = policy("easy");
    let asked = asked(&workload, &sim, &policy);
    let longest = |job: &usize| wait_of(&workload, *job).unwrap();
    let job = (100..250)
        .max_by(|one, other| longest(one).total_cmp(&longest(other)))
        .unwrap();
    let (submit, wait_s) = (workload.jobs[job].submit, longest(&job));
    assert!(wait_s > 600.0);
    for part in [0.0, 0.3, 0.6, 0.99] {
        let now = asked
            .until(submit + Time::from_secs_f64(wait_s * part), |job| job % 10 == 0)
            .unwrap();
        asked.look(&now, |scene| {
            let number = scene
                .present
                .waiting
                .iter()
                .position(|other| *other == job)
                .unwrap();
            let bares = scene.bares(&[Subject::Waits(number)], 10, Seed(1)).unwrap();
            // Plain history is the rest of waits that were longer; where none was, the replays are all that is known.
            let longest_s = (0..workload.jobs.len()).filter_map(|other| wait_of(&workload, other));
            let rest_s = longest_s.fold(0.0, f64::max) - wait_s * part;
            let Bare { history, replay, .. } = &bares[0];
            assert!(
                history == replay || history.iter().all(|left_s| *left_s <= rest_s),
                "{history:?}"
            );
            assert!(part < 0.3 || history[4] > 0.0, "{history:?}");
            let (_, stated) = now.learner.state(&bares[0]);
            for of in stated {
                assert!(of.iter().all(|wait_s| *wait_s >= 0.0), "{of:?}");
                assert!(of.is_sorted(), "{of:?}");
            }
        });
    }
}

#[test]
fn below_200_resolved_forecasts_plain_history_answers() {
    let (workload, sim) = list("easy", 300, 7);
    let policy = policy("easy");
    let now = asked(&workload, &sim, &policy)
        .until(Time::MAX, |job| job % 2 == 0)
        .unwrap();
    assert_eq!(now.learner.method(None), Method::History);
    assert_eq!(now.learner.method(Some(Method::Replay)), Method::Replay);
    assert!(now.learner.num_resolved() < 200);
}

#[test]
fn boosted_trees_find_the_quantiles_of_two_groups() {
    // Group 0 is even on 0 to 1, group 1 on 10 to 11.
    let rows: Vec<Vec<f64>> = (0..400).map(|number| vec![f64::from(number % 2), 0.5]).collect();
    let targets: Vec<f64> = (0..400)
        .map(|number| f64::from(number % 2) * 10.0 + f64::from(number) / 400.0)
        .collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    for part in [0.1, 0.5, 0.9] {
        let found = Boosted::fit(&rows, &targets, part, true);
        for group in [0.0, 1.0] {
            let stated = found.at(&[group, 0.5]);
            assert!(
                (stated - (group * 10.0 + part)).abs() < 0.2,
                "{part} of {group}: {stated}"
            );
        }
    }
    assert_eq!((quantile(&[1.0, 2.0, 4.0], 0.75), quantile(&[], 0.5)), (3.0, 0.0));
}

/// Jobs with limits run half of them, those without an hour: neither is taken for the other.
#[test]
fn run_times_of_jobs_with_and_without_limits_are_apart() {
    let (mut workload, _) = list("easy", 200, 5);
    for (number, job) in workload.jobs.iter_mut().enumerate() {
        let has_limit = number % 2 == 0;
        job.estimate_s = has_limit.then_some(20_000.0);
        job.run_time_s = if has_limit { 10_000.0 } else { 3600.0 };
    }
    let mut past = pleach_forecast::past::Past::of(&workload);
    for (job, spec) in workload.jobs.iter().enumerate() {
        past.ended(job, spec.run_time_s);
    }
    let of = |job: usize, limit_s: f64| {
        let who = pleach_forecast::past::Who {
            limit_s,
            ..past.who(job)
        };
        past.runs(who, 0.0).at(0.5)
    };
    assert_eq!(of(0, 20_000.0), 10_000.0);
    // Of another limit than any: as large a part of it.
    assert_eq!(of(0, 4000.0), 2000.0);
    // Without one it may be any of them.
    assert!([3600.0, 10_000.0].contains(&of(1, 0.0)), "{}", of(1, 0.0));
}
