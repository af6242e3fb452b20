//! Lists of our own whose schedules are worked by hand.

use pleach_dealing::kubernetes::{Kubernetes, KubernetesConfig};
use pleach_env::failures::OutcomeModel;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::{Seed, SimConfig, simulate_planner};
use pleach_scheduler::{ActionKind, Capabilities};

use crate::labelled;

/// (submission s, pods, GPUs of each, run time s, priority)
type Row = (f64, u32, u32, f64, i32);

/// When the jobs begin for the first time, s, on so many nodes of eight GPUs.
fn starts(num_nodes: u32, rows: &[Row], native: bool) -> Vec<f64> {
    let job = |(number, (submit_s, pods, gpus, run_s, priority)): (usize, &Row)| {
        let class = ["low", "high"][*priority as usize];
        labelled::job(number, (*submit_s, pods * gpus, *gpus, *run_s), ("", class))
    };
    let list = labelled::list(num_nodes, rows.iter().enumerate().map(job));
    let config = KubernetesConfig {
        priority_classes: [("high".to_owned(), 1000)].into(),
        ..KubernetesConfig::default()
    };
    let sim = SimConfig {
        capabilities: Capabilities::DEFAULT.with(ActionKind::Preempt),
        ..SimConfig::default()
    };
    let mut planner = Kubernetes::new(config, native).unwrap();
    let result = simulate_planner(&list, &sim, &mut planner).unwrap();
    result.jobs.iter().map(|job| job.first_start_s).collect()
}

#[test]
fn the_last_refused_is_the_last_to_be_tried_and_a_backoff_lets_others_ahead() {
    // Jobs 1 and 2 want the node of job 0, in the order of their refusals. When job 3, which fits at once, has ended, both are
    // refused again, so job 4, which came after that, is behind them; job 2 backs off no longer than job 1.
    let rows = [
        (0.0, 1, 7, 100.0, 0),
        (1.0, 1, 8, 10.0, 0),
        (2.0, 1, 8, 10.0, 0),
        (3.0, 1, 1, 20.0, 0),
        (30.0, 1, 8, 10.0, 0),
    ];
    let found = starts(1, &rows, false);
    let order = [1, 2, 4].map(|job: usize| found[job]);
    assert!(order[0] < order[1] && order[1] < order[2], "{found:?}");
    assert!(
        (found[1] - 100.05).abs() < 1e-3,
        "0.02 s to the pod, 0.03 s to its place: {found:?}"
    );
}

#[test]
fn pods_of_a_gang_hold_their_places_idle_until_all_have_one_and_native_gangs_hold_none() {
    // Job 1 gets one node of two, so that job 2 waits for it; a native gang waits without a node, and job 2 takes it.
    let rows = [(0.0, 1, 8, 50.0, 0), (1.0, 2, 8, 10.0, 0), (2.0, 1, 8, 10.0, 0)];
    let alone = starts(2, &rows, false);
    assert!(
        (50.0..50.2).contains(&alone[1]) && (60.0..60.3).contains(&alone[2]),
        "{alone:?}"
    );
    let native = starts(2, &rows, true);
    assert!(native[2] < 2.1 && (50.0..50.2).contains(&native[1]), "{native:?}");
}

#[test]
fn two_gangs_that_hold_half_each_are_stuck_until_one_is_taken_off() {
    let rows = [
        (0.0, 1, 8, 50.0, 0),
        (0.0, 1, 8, 60.0, 0),
        (1.0, 2, 8, 10.0, 0),
        (2.0, 2, 8, 10.0, 0),
    ];
    let found = starts(2, &rows, false);
    // Job 2 takes the first node, and where job 3 is tried first at the second, an hour passes.
    assert!(found[2] < 61.0 || found[2] > 3600.0, "{found:?}");
    let wide: Vec<Row> = (0..4)
        .map(|number| (f64::from(number) / 100.0, 3, 4, 10.0, 0))
        .collect();
    let found = starts(2, &wide, false);
    assert!(found.iter().all(|start_s| start_s.is_finite()), "{found:?}");
    assert!(starts(2, &wide, true).iter().all(|start_s| *start_s < 100.0));
}

#[test]
fn a_pod_of_higher_priority_has_the_latest_of_the_lowest_removed() {
    let rows = [
        (0.0, 1, 8, 100.0, 1),
        (1.0, 1, 8, 100.0, 0),
        (2.0, 1, 8, 100.0, 0),
        (10.0, 1, 8, 10.0, 1),
    ];
    let found = starts(3, &rows, false);
    assert!((found[3] - 10.02).abs() < 1e-3, "{found:?}");
}

#[test]
fn lists_with_types_shares_tasks_and_failing_nodes_are_played_to_their_ends() {
    for name in [
        "philly-like",
        "gavel-multi",
        "synergy-multi",
        "openb-like",
        "pollux",
    ] {
        let config = GeneratorConfig::preset(name)
            .unwrap()
            .resized(Some(80), Some(3.0));
        let list = generate(&config, Seed(7)).unwrap();
        for native in [false, true] {
            let mut sim = SimConfig {
                capabilities: Capabilities::DEFAULT.with(ActionKind::Preempt),
                outcomes: Some(OutcomeModel::philly()),
                ..SimConfig::default()
            };
            sim.capacity.node_mtbf_s = Some(86_400.0);
            let mut planner = Kubernetes::new(KubernetesConfig::default(), native).unwrap();
            let result = simulate_planner(&list, &sim, &mut planner).unwrap();
            let ended = result.jobs.iter().all(|job| job.finish_s.is_finite());
            assert!(
                ended,
                "{name} under {}",
                pleach_scheduler::Planner::name(&planner)
            );
        }
    }
}
