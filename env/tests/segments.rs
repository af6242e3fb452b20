//! Which job ran where and when, by hand.

use pleach_env::schedule::{Ended, Segment};
use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{SimConfig, simulate};
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::heuristics::by_name;
use pleach_scheduler::{ActionKind, Time};

fn list(num_gpus: u32, jobs: &[(f64, u32, f64)]) -> Workload {
    let jobs = jobs
        .iter()
        .enumerate()
        .map(|(number, (submit_s, num_gpus, run_s))| {
            JobSpec::new(
                number.to_string(),
                Time::from_secs_f64(*submit_s),
                *num_gpus,
                *run_s,
            )
        });
    Workload {
        name: "by hand".into(),
        cluster: ClusterSpec::uniform(1, num_gpus, 1),
        classes: vec![ModelClass::default()],
        jobs: jobs.collect(),
    }
}

/// Job, attempt, from, to, rate and end of every segment.
fn told(segments: &[Segment]) -> Vec<(u32, u32, f64, f64, f64, Ended)> {
    let row = |s: &Segment| (s.job, s.attempt, s.from_s, s.to_s, s.rate, s.ended);
    segments.iter().map(row).collect()
}

fn recorded() -> SimConfig {
    SimConfig {
        record_segments: true,
        ..SimConfig::default()
    }
}

#[test]
fn a_job_that_is_stopped_has_two_attempts_and_its_restart_has_rate_0() {
    let workload = list(2, &[(0.0, 2, 100.0), (50.0, 2, 10.0)]);
    let mut sim = recorded();
    sim.capabilities.grant(ActionKind::Preempt, true);
    let result = simulate(&workload, &sim, by_name("srtf").unwrap().as_mut()).unwrap();
    assert_eq!(
        told(&result.segments),
        [
            (0, 1, 0.0, 50.0, 1.0, Ended::Preempted),
            (1, 1, 50.0, 60.0, 1.0, Ended::Completed),
            (0, 2, 60.0, 90.0, 0.0, Ended::Continued),
            (0, 2, 90.0, 140.0, 1.0, Ended::Completed),
        ]
    );
    assert!(result.segments.iter().all(|segment| segment.num_gpus() == 2));
}

#[test]
fn a_job_whose_neighbour_comes_and_goes_goes_on_at_another_rate() {
    let workload = list(1, &[(0.0, 1, 100.0), (40.0, 1, 20.0)]);
    let mut sim = recorded();
    sim.capabilities.sharing = Sharing::TimeSlice;
    let result = simulate(&workload, &sim, by_name("sjf-share").unwrap().as_mut()).unwrap();
    let first: Vec<&Segment> = result
        .segments
        .iter()
        .filter(|segment| segment.job == 0)
        .collect();
    assert_eq!(first.iter().map(|s| s.attempt).max(), Some(1));
    assert_eq!(
        (first[0].to_s, first[0].rate, first[0].ended),
        (40.0, 1.0, Ended::Continued)
    );
    assert!(first[1].rate < 1.0, "{first:?}");
    let done_s: f64 = first.iter().map(|s| s.rate * (s.to_s - s.from_s)).sum();
    assert!((done_s - 100.0).abs() < 1e-4, "{done_s}");
}

#[test]
fn nothing_is_kept_unless_somebody_asks_and_asking_changes_no_result() {
    let workload = list(
        4,
        &[(0.0, 2, 100.0), (5.0, 4, 30.5), (7.0, 1, 60.0), (8.0, 3, 10.0)],
    );
    let run = |sim: &SimConfig| simulate(&workload, sim, by_name("sjf").unwrap().as_mut()).unwrap();
    let (with, without) = (run(&recorded()), run(&SimConfig::default()));
    assert!(without.segments.is_empty() && with.segments.len() == 4);
    assert_eq!((with.jobs, with.metrics), (without.jobs, without.metrics));
}
