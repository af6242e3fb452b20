//! Sia by hand, and its programme against every way to choose.

use pleach_scheduler::cluster::JobState;
use pleach_scheduler::physics::goodput::Elastic;
use pleach_scheduler::{JobId, NodeId};
use proptest::prelude::*;

use super::*;
use crate::elastic::tests::{
    elastic_cluster, elastic_cluster_with, held_gpus, proportional, saturating, submit_class,
};

fn planner() -> Sia {
    Sia::new(SiaConfig::default()).unwrap()
}

fn at(planner: &mut Sia, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
    cluster.advance(Time::from_secs_f64(now_s));
    planner.plan(cluster).unwrap();
    cluster.check();
    held_gpus(cluster)
}

#[test]
fn a_job_starts_on_one_gpu_and_doubles_from_round_to_round() {
    let mut cluster = elastic_cluster(3, 4, &[proportional(64)]);
    let mut planner = planner();
    submit_class(&mut cluster, 0, 1, 1e6);
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [1]);
    assert_eq!(at(&mut planner, &mut cluster, 30.0), [1], "the round is not over");
    let grown: Vec<u32> = [60.0, 120.0, 180.0, 240.0]
        .map(|now_s| at(&mut planner, &mut cluster, now_s)[0])
        .to_vec();
    assert_eq!(grown, [2, 4, 8, 12]);
    // Whole nodes only: 12 GPUs on three of them.
    assert_eq!(cluster.job(JobId(0)).placement.len(), 3);
}

#[test]
fn the_weight_of_waiting_decides_whether_a_job_is_worth_a_gpu_at_all() {
    // p = -0.5: a row's least configuration costs 1, waiting 1.1. With a weight below 1 the least configuration is worth
    // less than waiting; a job that fits on idle GPUs is started nevertheless.
    let cluster = elastic_cluster(1, 4, &[proportional(64)]);
    let value = |idle_weight: f64| {
        let mut cluster = cluster.clone();
        let id = submit_class(&mut cluster, 0, 1, 1e6);
        let mut planner = Sia::new(SiaConfig {
            idle_weight,
            ..SiaConfig::default()
        })
        .unwrap();
        planner.last_held = vec![2];
        let job = planner.paces.scaling(&cluster, id);
        let all = configurations(&cluster, &[4]);
        let row = planner.row(&cluster, &job, &all);
        row.iter().map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    // On 1, 2, 4 GPUs: 1.1 - 1, 1.1 - 2^-0.5, 1.1 - 4^-0.5.
    let expected = [0.1, 1.1 - 0.5_f64.sqrt(), 0.6];
    for (found, expected) in value(1.1).iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    assert!(value(0.9)[0] < 0.0);
}

#[test]
fn a_restart_must_be_worth_it() {
    // Restarts of 100 s. At 60 s a job that doubles keeps (60 - 0) / (60 + 100) = 0.375 of twice the goodput: it stays. At
    // 120 s 120 / 220 = 0.545 of it is a little more than 1: it goes.
    let mut cluster = elastic_cluster_with(1, 2, &[proportional(64)], 100.0);
    let mut planner = planner();
    submit_class(&mut cluster, 0, 1, 1e6);
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [1]);
    assert_eq!(at(&mut planner, &mut cluster, 60.0), [1]);
    assert_eq!(at(&mut planner, &mut cluster, 120.0), [2]);
}

#[test]
fn gpus_go_to_jobs_that_scale_and_rigid_gangs_run_whole() {
    // Classes: 0 scales, 1 does not, 2 is rigid. 8 GPUs of two nodes.
    let mut cluster = elastic_cluster(2, 4, &[proportional(64), saturating(64)]);
    let mut planner = planner();
    submit_class(&mut cluster, 0, 1, 1e6);
    submit_class(&mut cluster, 1, 1, 1e6);
    submit_class(&mut cluster, 2, 3, 1e6);
    let mut held = Vec::new();
    for round in 0..5 {
        held = at(&mut planner, &mut cluster, 60.0 * f64::from(round));
    }
    // 8 GPUs would need both nodes: 4 for the one that scales.
    assert_eq!(held, [4, 1, 3]);
    assert_eq!(cluster.job(JobId(0)).placement.len(), 1);
}

#[test]
fn jobs_make_way_for_whole_nodes_when_nothing_else_fits() {
    // Two nodes of 2 with a small job on each; one leaves and the third wants a whole node: the other small one stays.
    let mut cluster = elastic_cluster(2, 2, &[proportional(64), saturating(64)]);
    let mut planner = planner();
    let small = [0, 1].map(|_| submit_class(&mut cluster, 1, 1, 1e6));
    for (id, node) in small.into_iter().zip([0, 1]) {
        let slice = pleach_scheduler::cluster::Slice {
            node: NodeId(node),
            gpus: 1,
        };
        cluster.start(id, [slice].into_iter().collect());
    }
    let gang = submit_class(&mut cluster, 2, 2, 1e6);
    // Both small jobs hold 1 GPU and stay at 1; a rigid gang may be spread, so no job has to move.
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [1, 1, 2]);
    assert_eq!(cluster.job(gang).state, JobState::Running);
    cluster.finish(gang);
    let scaling = submit_class(&mut cluster, 0, 2, 1e6);
    assert_eq!(at(&mut planner, &mut cluster, 60.0)[3], 1);
    assert_eq!(at(&mut planner, &mut cluster, 120.0)[3], 2);
    assert_eq!(
        cluster.job(scaling).placement.len(),
        1,
        "one of the small jobs moved"
    );
    assert_eq!(cluster.num_running(), 3);
}

/// The programme as it is written, over every way to choose.
fn best_objective(rows: &[Vec<(Configuration, f64)>], left: &mut [u32], idle: f64) -> f64 {
    let Some((row, rest)) = rows.split_first() else {
        return 0.0;
    };
    let mut best = idle + best_objective(rest, left, idle);
    for (at, value) in row {
        if at.num_gpus <= left[at.kind.index()] {
            left[at.kind.index()] -= at.num_gpus;
            best = best.min(idle - value + best_objective(rest, left, idle));
            left[at.kind.index()] += at.num_gpus;
        }
    }
    best
}

proptest! {
    #[test]
    fn the_programme_is_solved_to_the_best_of_all_ways_to_choose(
        which in proptest::collection::vec(0_u16..4, 1..5), held in proptest::collection::vec(0_u32..3, 4),
    ) {
        let models = ["cifar10", "bert", "yolov3"].map(|name| Elastic::from_name(name).unwrap());
        let mut cluster = elastic_cluster(2, 2, &models);
        let ids: Vec<JobId> = which.iter().map(|class| submit_class(&mut cluster, *class, 1, 1e6)).collect();
        let mut planner = planner();
        planner.last_held = held;
        planner.last_held.truncate(ids.len());
        let capacity = [4];
        let all = configurations(&cluster, &capacity);
        let scalings = planner.paces.scalings(&cluster, &ids);
        let rows: Vec<_> = scalings.iter().map(|job| planner.row(&cluster, job, &all)).collect();
        let items: Vec<Vec<Choice>> = rows
            .iter()
            .map(|row| {
                let choices = row.iter().map(|(at, value)| Choice { kind: 0, num_gpus: at.num_gpus, value: *value });
                choices.collect()
            })
            .collect();
        let chosen = choose(&items, &capacity);
        let objective: f64 = rows
            .iter()
            .zip(&chosen)
            .map(|(row, at)| 1.1 - at.map_or(0.0, |at| row[at].1))
            .sum();
        let best = best_objective(&rows, &mut [4], 1.1);
        prop_assert!((objective - best).abs() < 1e-9, "{objective} {best}");
    }
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let wrong = SiaConfig {
        fairness_power: 0.0,
        ..SiaConfig::default()
    };
    let text = Sia::new(wrong).unwrap_err().to_string();
    assert!(text.contains("sia.fairness_power"), "{text}");
}
