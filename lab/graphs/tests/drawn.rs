//! Graphs that are drawn are like the measured ones.

use std::sync::Arc;

use pleach_graphs::generate::{Arrivals, Shape, graphs, list};
use pleach_graphs::list::Machine;
use pleach_graphs::rules::{RULES, by_name, play};
use pleach_workloads::Seed;

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Decima's graphs of TPC-H, as measured: 2 to 18 stages (mean 9.2), 0.89 edges a stage, median 200 tasks, work of 935 s on average, 90 %
/// between 178 and 2,764 s.
#[test]
fn graphs_like_those_of_tpch_have_their_sizes() {
    let drawn = graphs(Shape::Tpch, 3_000, Seed(1)).unwrap();
    let stages: Vec<f64> = drawn.iter().map(|graph| graph.stages().len() as f64).collect();
    let edges: f64 = drawn.iter().map(|graph| graph.num_edges() as f64).sum();
    assert!((mean(&stages) - 9.2).abs() < 0.2, "{}", mean(&stages));
    assert!(stages.iter().all(|num| (2.0..=18.0).contains(num)));
    let each = edges / stages.iter().sum::<f64>();
    assert!((each - 0.89).abs() < 0.01, "{each}");
    let tasks = drawn
        .iter()
        .flat_map(|graph| graph.stages().iter().map(|stage| f64::from(stage.tasks)));
    let tasks = sorted(tasks.collect());
    assert_eq!(tasks[tasks.len() / 2], 200.0);
    let work_s = sorted(drawn.iter().map(|graph| 1e-3 * graph.work_ms() as f64).collect());
    let at = |share: f64| work_s[(share * work_s.len() as f64) as usize];
    assert!((mean(&work_s) / 935.0 - 1.0).abs() < 0.08, "{}", mean(&work_s));
    assert!(
        (at(0.05) / 178.0 - 1.0).abs() < 0.15 && (at(0.95) / 2_764.0 - 1.0).abs() < 0.15,
        "{} {}",
        at(0.05),
        at(0.95)
    );
}

#[test]
fn batch_jobs_of_a_cloud_are_mostly_small_and_some_are_large() {
    let drawn = graphs(Shape::Alibaba, 3_000, Seed(1)).unwrap();
    let stages = sorted(drawn.iter().map(|graph| graph.stages().len() as f64).collect());
    let work_s = sorted(drawn.iter().map(|graph| 1e-3 * graph.work_ms() as f64).collect());
    assert!(
        stages[1_500] <= 5.0 && stages[2_990] >= 25.0,
        "{} {}",
        stages[1_500],
        stages[2_990]
    );
    assert!(
        work_s[2_970] / work_s[30] > 1e3,
        "{} {}",
        work_s[30],
        work_s[2_970]
    );
}

/// Job ms of each rule on a batch and a stream of a seed, as they were when the world came: the same seed is the same play.
#[test]
fn a_seed_is_the_same_play_as_before() {
    let drawn = Arc::new(graphs(Shape::Tpch, 30, Seed(7)).unwrap());
    let found = [
        Arrivals::Batch { jobs: 10 },
        Arrivals::Stream { jobs: 15, load: 0.8 },
    ]
    .map(|arrivals| {
        let list = Arc::new(list(&drawn, Machine::default(), arrivals, Seed(8)).unwrap());
        let played = RULES.iter().map(|rule| {
            let mut by = by_name(rule.name, &list, 9).unwrap();
            play(Arc::clone(&list), by.as_mut()).unwrap().job_ms
        });
        played.collect::<Vec<u64>>()
    });
    assert_eq!(found, PINNED);
}

/// In the order of [`RULES`].
const PINNED: [[u64; 10]; 2] = [
    [
        1_346_267, 1_109_883, 1_124_762, 895_870, 1_433_401, 3_351_342, 2_873_707, 927_957, 896_814,
        1_801_732,
    ],
    [
        2_245_316, 1_608_340, 1_619_467, 1_391_592, 1_578_304, 6_338_382, 4_360_511, 1_355_515, 1_345_086,
        2_505_617,
    ],
];
