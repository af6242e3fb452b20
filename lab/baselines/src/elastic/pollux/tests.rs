//! Pollux by hand.

use super::*;
use crate::elastic::tests::{
    elastic_cluster, elastic_cluster_with, held_gpus, proportional, saturating, submit_class,
};

fn planner() -> Pollux {
    Pollux::new(PolluxConfig::default()).unwrap()
}

fn at(planner: &mut Pollux, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
    cluster.advance(Time::from_secs_f64(now_s));
    planner.plan(cluster).unwrap();
    cluster.check();
    held_gpus(cluster)
}

#[test]
fn a_job_alone_doubles_from_round_to_round_until_it_has_the_cluster() {
    let mut cluster = elastic_cluster(2, 4, &[proportional(64)]);
    let mut planner = planner();
    submit_class(&mut cluster, 0, 1, 1e6);
    let held: Vec<u32> = [0.0, 60.0, 120.0, 180.0]
        .map(|now_s| at(&mut planner, &mut cluster, now_s)[0])
        .to_vec();
    assert_eq!(held, [1, 2, 4, 8]);
    assert_eq!(
        at(&mut planner, &mut cluster, 200.0),
        [8],
        "the round is not over"
    );
}

#[test]
fn two_equal_jobs_share_equally_and_one_that_does_not_scale_gets_one_gpu() {
    let mut cluster = elastic_cluster(1, 8, &[proportional(64), saturating(64)]);
    let mut planner = planner();
    for _ in 0..2 {
        submit_class(&mut cluster, 0, 1, 1e6);
    }
    let mut held = Vec::new();
    for round in 0..6 {
        held = at(&mut planner, &mut cluster, 60.0 * f64::from(round));
    }
    assert_eq!(held, [4, 4]);
    submit_class(&mut cluster, 1, 1, 1e6);
    for round in 6..12 {
        held = at(&mut planner, &mut cluster, 60.0 * f64::from(round));
    }
    // 1 / a + 1 / b is least for 3 + 4 = 7; the third job gains nothing from a second GPU.
    assert_eq!((held[0].min(held[1]), held[0].max(held[1]), held[2]), (3, 4, 1));
}

#[test]
fn an_old_job_moves_and_one_that_has_just_begun_does_not() {
    // Restarts of 100 s. At 60 s a job on twice its GPUs keeps 60 / 160 of twice its speed: it stays. At 120 s 120 / 220 of
    // it is more than its speed: it goes.
    let mut cluster = elastic_cluster_with(1, 2, &[proportional(64)], 100.0);
    let mut planner = planner();
    submit_class(&mut cluster, 0, 1, 1e6);
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [1]);
    assert_eq!(at(&mut planner, &mut cluster, 60.0), [1]);
    assert_eq!(at(&mut planner, &mut cluster, 120.0), [2]);
}

#[test]
fn a_gang_waits_its_turn_whole_and_runs_whole() {
    // Classes: 0 scales, 1 is rigid. Without its gang of 6 the mean would be ruled by 0.01.
    let mut cluster = elastic_cluster(2, 4, &[proportional(64)]);
    let mut planner = planner();
    submit_class(&mut cluster, 0, 1, 1e6);
    for round in 0..4 {
        at(&mut planner, &mut cluster, 60.0 * f64::from(round));
    }
    submit_class(&mut cluster, 1, 6, 1e6);
    assert_eq!(at(&mut planner, &mut cluster, 240.0), [2, 6]);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let wrong = PolluxConfig {
        population: 1,
        ..PolluxConfig::default()
    };
    let text = Pollux::new(wrong).unwrap_err().to_string();
    assert!(text.contains("pollux.population"), "{text}");
}
