//! The edges of the clock and of the tables: the shortest and the longest job, the latest instant, thousands of events at
//! once, ties, and thousands of interruptions of one job. Everything is exact.

use pleach_env::beliefs::BeliefErrors;
use pleach_env::workload::{JobSpec, Outcome, RUN_TIME_S_MAX, RUN_TIME_S_MIN, SUBMIT_S_MAX, Workload};
use pleach_env::{JobOutcome, SimConfig, simulate};
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use pleach_scheduler::{ActionKind, Time, heuristics};

/// (submission s, gang, run time s)
fn workload(cluster: ClusterSpec, rows: &[(f64, u32, f64)]) -> Workload {
    let jobs = rows
        .iter()
        .enumerate()
        .map(|(id, (submit_s, gang, run_s))| JobSpec {
            id: id.to_string(),
            submit: Time::from_secs_f64(*submit_s),
            num_gpus: *gang,
            run_time_s: *run_s,
            estimate_s: None,
            tenant: 0,
            class: 0,
            user: None,
            outcome: Outcome::Completed,
            resources: Resources::WHOLE_GPU,
            observed: None,
        });
    Workload {
        name: "edges".into(),
        cluster,
        classes: vec![ModelClass {
            name: "any".into(),
            speed: vec![1.0],
            locality: LocalityFactors::NONE,
            ..ModelClass::default()
        }],
        jobs: jobs.collect(),
    }
}

fn one_gpu(rows: &[(f64, u32, f64)]) -> Workload {
    workload(ClusterSpec::uniform(1, 1, 1), rows)
}

/// Preemption on, at this cost.
fn run(policy: &str, workload: &Workload, restart_cost_s: f64) -> Vec<JobOutcome> {
    let mut config = SimConfig::default();
    config.capabilities.grant(ActionKind::Preempt, true);
    config.capabilities.restart_cost_s = restart_cost_s;
    let mut policy = heuristics::by_name(policy).unwrap();
    simulate(workload, &config, &mut policy).unwrap().jobs
}

fn micros(seconds: f64) -> i64 {
    Time::from_secs_f64(seconds).0
}

#[test]
fn the_shortest_and_the_longest_job_share_a_gpu_to_the_microsecond() {
    let rows = [
        (0.0, 1, RUN_TIME_S_MIN),
        (0.0, 1, RUN_TIME_S_MAX),
        (0.0, 1, RUN_TIME_S_MIN),
    ];
    let finishes = |policy: &str| -> Vec<i64> {
        let jobs = run(policy, &one_gpu(&rows), 0.0);
        jobs.iter().map(|job| micros(job.finish_s)).collect()
    };
    assert_eq!(
        finishes("fifo"),
        [1, 1_000_000_000_000_001, 1_000_000_000_000_002]
    );
    // Rests below a second count as a second, so the two short ones are equal and go by arrival.
    assert_eq!(finishes("sjf"), [1, 1_000_000_000_000_002, 2]);
}

#[test]
fn the_longest_job_at_the_latest_instant_still_ends_on_time() {
    let jobs = run(
        "fifo",
        &one_gpu(&[(SUBMIT_S_MAX, 1, RUN_TIME_S_MAX), (SUBMIT_S_MAX, 1, 0.5)]),
        0.0,
    );
    assert_eq!((jobs[0].finish_s, jobs[1].finish_s), (3e9, 3e9 + 0.5));
}

#[test]
fn no_work_at_all_and_work_below_a_microsecond_are_refused() {
    for run_s in [0.0, 1e-7, -1.0, f64::INFINITY, f64::NAN, 1.1e9] {
        let text = one_gpu(&[(0.0, 1, run_s)]).validate().unwrap_err().to_string();
        assert!(text.contains("jobs[0].run_time_s"), "{text}");
    }
}

#[test]
fn five_thousand_jobs_come_run_and_leave_at_once() {
    // 625 nodes of 8. At 100 s all jobs of the first wave leave, all of the second come, and all of those start.
    let rows: Vec<(f64, u32, f64)> = (0..10_000)
        .map(|id| (if id < 5000 { 0.0 } else { 100.0 }, 1, 100.0))
        .collect();
    let workload = workload(ClusterSpec::uniform(625, 8, 25), &rows);
    for policy in ["fifo", "sjf", "srtf", "easy"] {
        let jobs = run(policy, &workload, 30.0);
        assert_eq!(jobs.len(), 10_000);
        for job in jobs {
            assert_eq!(
                (job.first_start_s, job.jct_s(), job.num_preemptions),
                (job.submit_s, 100.0, 0)
            );
        }
    }
}

#[test]
fn thousands_of_jobs_of_a_microsecond_follow_each_other_without_a_gap() {
    let workload = one_gpu(&[(1e6, 1, 1e-6); 3000]);
    for name in heuristics::names() {
        let jobs = run(name, &workload, 30.0);
        for (place, job) in jobs.iter().enumerate() {
            // Equal in everything, so every order is the order of the list.
            assert_eq!(
                micros(job.finish_s),
                1_000_000_000_000 + place as i64 + 1,
                "{name}"
            );
        }
    }
}

#[test]
fn equal_jobs_keep_the_order_of_the_list_under_every_heuristic() {
    // Two at a time on 4 GPUs; gangs of 2, all alike, all at once.
    let workload = workload(ClusterSpec::uniform(2, 2, 2), &[(5.0, 2, 60.0); 40]);
    for name in heuristics::names() {
        for (place, job) in run(name, &workload, 30.0).iter().enumerate() {
            assert_eq!(job.first_start_s, 5.0 + (place / 2) as f64 * 60.0, "{name}");
        }
    }
}

#[test]
fn a_job_that_arrives_as_another_leaves_finds_its_gpus_free() {
    for name in heuristics::names() {
        let jobs = run(
            name,
            &one_gpu(&[(0.0, 1, 10.0), (10.0, 1, 10.0), (20.0, 1, 1e-6)]),
            30.0,
        );
        assert!(jobs.iter().all(|job| job.first_start_s == job.submit_s), "{name}");
    }
}

#[test]
fn a_job_that_is_stopped_five_thousand_times_loses_no_microsecond() {
    // A day of 0.7 s steps in the way of a job of a day, with and without restarts of 0.1 s.
    let mut rows = vec![(0.0, 1, 86_400.0)];
    rows.extend((1..=5000).map(|number| (f64::from(number) * 3.7, 1, 1.3)));
    for restart_cost_s in [0.0, 0.1] {
        let jobs = run("srtf", &one_gpu(&rows), restart_cost_s);
        assert_eq!(jobs[0].num_preemptions, 5000);
        let wanted_s = 86_400.0 + 5000.0 * (1.3 + restart_cost_s);
        assert_eq!(micros(jobs[0].finish_s), micros(wanted_s));
        assert_eq!(micros(jobs[0].held_s), micros(86_400.0 + 5000.0 * restart_cost_s));
    }
}

/// Hundreds of jobs of a class begin with one belief about its speed, and what each of them shows is no error of its own.
#[test]
fn beliefs_about_hundreds_of_jobs_side_by_side_stay_numbers() {
    let rows: Vec<(f64, u32, f64)> = (0..4000)
        .map(|job| (f64::from(job / 1000) * 1e4, 1, 100.0))
        .collect();
    let sim = SimConfig {
        beliefs: Some(BeliefErrors::MEASURED),
        ..SimConfig::default()
    };
    let workload = workload(ClusterSpec::uniform(1000, 1, 1000), &rows);
    let mut fifo = heuristics::by_name("fifo").unwrap();
    let jobs = simulate(&workload, &sim, &mut fifo).unwrap().jobs;
    assert_eq!(jobs.len(), 4000);
}
