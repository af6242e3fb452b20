//! Lower bounds against the best of all schedules on tiny instances, and against every heuristic on random ones.

use crate::brute_force::{Pool, Row, least_makespan_s, least_sum_jct_s};
use crate::scenario;
use pleach_env::bound::LowerBounds;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{Seed, SimConfig, simulate, simulate_planner_within};
use pleach_scheduler::cluster::{Capabilities, Cluster};
use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources,
};
use pleach_scheduler::{Planner, PolicyError, PolicyPlanner, Time, heuristics};
use proptest::prelude::*;

/// Rounding of the clock and of the bounds, s: half a microsecond and 1e-9 of the value.
fn slack_s(value_s: f64) -> f64 {
    1e-6 + 1e-9 * value_s
}

fn workload_of(pools: &[Pool], rows: &[Row]) -> Workload {
    let name = |kind: usize| format!("type{kind}");
    let gpu_types = (0..pools.len()).map(|kind| GpuTypeSpec {
        name: name(kind),
        memory_gib: 16.0,
        mig: None,
    });
    let groups = pools.iter().enumerate().map(|(kind, pool)| NodeGroup {
        count: 1,
        gpus_per_node: pool.0,
        gpu_type: name(kind),
        nodes_per_rack: 1,
        ..NodeGroup::default()
    });
    let num_gpus = pools.iter().map(|pool| pool.0).sum();
    let jobs = rows.iter().enumerate().map(|(id, (submit, gang, work))| JobSpec {
        id: id.to_string(),
        submit: Time::from_secs_f64(f64::from(*submit)),
        num_gpus: *gang,
        run_time_s: f64::from(*work),
        estimate_s: None,
        tenant: 0,
        class: 0,
        user: None,
        outcome: Outcome::Completed,
        resources: Resources::WHOLE_GPU,
        observed: None,
    });
    let workload = Workload {
        name: "rows".into(),
        jobs: jobs.collect(),
        classes: vec![ModelClass {
            name: "any".into(),
            speed: pools.iter().map(|pool| f64::from(pool.1)).collect(),
            locality: LocalityFactors::NONE,
            ..ModelClass::default()
        }],
        cluster: ClusterSpec {
            gpu_types: gpu_types.collect(),
            node_groups: groups.collect(),
            ..ClusterSpec::uniform(1, num_gpus, 1)
        },
    };
    workload.validate().unwrap();
    workload
}

/// Pools, and rows by release of which the first is at 0.
fn tiny(pools: impl Strategy<Value = Vec<Pool>>) -> impl Strategy<Value = (Vec<Pool>, Vec<Row>)> {
    let rows = proptest::collection::vec((0_u32..5, 0_u32..4, 1_u32..5), 1..=5);
    (pools, rows).prop_map(|(pools, mut rows)| {
        let most = pools.iter().map(|pool| pool.0).max().unwrap();
        rows.sort_unstable();
        rows[0].0 = 0;
        for row in &mut rows {
            row.1 = row.1 % most + 1;
        }
        (pools, rows)
    })
}

fn one_type() -> impl Strategy<Value = Vec<Pool>> {
    (1_u32..5).prop_map(|num_gpus| vec![(num_gpus, 1)])
}

fn two_types() -> impl Strategy<Value = Vec<Pool>> {
    (1_u32..3, 1_u32..3, 1_u32..4).prop_map(|(one, two, speed)| vec![(one, 1), (two, speed)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_schedule_of_a_tiny_instance_beats_the_bounds(
        (pools, rows) in prop_oneof![tiny(one_type()), tiny(two_types())],
    ) {
        let bounds = LowerBounds::of(&workload_of(&pools, &rows), &Capabilities::DEFAULT);
        let sum_s = least_sum_jct_s(&pools, &rows) as f64;
        let makespan_s = least_makespan_s(&pools, &rows) as f64;
        let avg_jct_s = sum_s / rows.len() as f64;
        prop_assert!(bounds.avg_jct_s <= avg_jct_s + slack_s(sum_s), "{bounds:?}, but {avg_jct_s} s can be had");
        prop_assert!(bounds.makespan_s <= makespan_s + slack_s(makespan_s), "{bounds:?}, but {makespan_s} s can be had");
    }

    #[test]
    fn on_one_gpu_the_bounds_are_reached((_, rows) in tiny(Just(vec![(1, 1)]))) {
        let pools = [(1, 1)];
        let bounds = LowerBounds::of(&workload_of(&pools, &rows), &Capabilities::DEFAULT);
        let sum_s = least_sum_jct_s(&pools, &rows) as f64;
        let makespan_s = least_makespan_s(&pools, &rows) as f64;
        prop_assert!((bounds.avg_jct_s * rows.len() as f64 - sum_s).abs() < slack_s(sum_s) * 10.0, "{bounds:?} {sum_s}");
        prop_assert!((bounds.makespan_s - makespan_s).abs() < slack_s(makespan_s) * 10.0, "{bounds:?} {makespan_s}");
    }

    #[test]
    fn no_heuristic_beats_the_bounds(workload in scenario::workload(40), config in scenario::config()) {
        let bounds = LowerBounds::of(&workload, &config.capabilities);
        for name in heuristics::names() {
            let mut policy = heuristics::by_name(name).unwrap();
            let found = simulate(&workload, &config, &mut policy).unwrap().metrics;
            prop_assert!(bounds.avg_jct_s <= found.avg_jct_s + slack_s(found.avg_jct_s), "{name}: {found:?} {bounds:?}");
            prop_assert!(bounds.makespan_s <= found.makespan_s + slack_s(found.makespan_s), "{name}: {found:?} {bounds:?}");
        }
    }
}

/// Mean of bound / optimum over a fixed set of instances, each with `num_gpus` GPUs and five jobs: the bounds are not only
/// right but say something.
fn mean_tightness(num_gpus: u32) -> (f64, f64) {
    let pools = [(num_gpus, 1)];
    let (mut jct, mut makespan, mut num) = (0.0, 0.0, 0.0);
    for case in 0..60_u32 {
        let mut rows: Vec<Row> = (0..5)
            .map(|job| {
                let draw = (case * 5 + job).wrapping_mul(2_654_435_761) >> 8;
                (draw % 4 * (job % 2), draw / 4 % num_gpus + 1, draw / 64 % 4 + 1)
            })
            .collect();
        rows.sort_unstable();
        let bounds = LowerBounds::of(&workload_of(&pools, &rows), &Capabilities::DEFAULT);
        jct += bounds.avg_jct_s * 5.0 / least_sum_jct_s(&pools, &rows) as f64;
        makespan += bounds.makespan_s / least_makespan_s(&pools, &rows) as f64;
        num += 1.0;
    }
    (jct / num, makespan / num)
}

#[test]
fn the_bounds_are_within_a_sixth_of_the_optimum_on_small_instances() {
    for num_gpus in [2, 4] {
        let (jct, makespan) = mean_tightness(num_gpus);
        assert!(jct > 0.83 && jct <= 1.0, "{num_gpus} GPUs: {jct}");
        assert!(makespan > 0.83 && makespan <= 1.0, "{num_gpus} GPUs: {makespan}");
    }
}

#[test]
fn a_run_that_cannot_come_under_its_bound_is_broken_off_long_before_its_end() {
    let preset = GeneratorConfig::preset("gavel-multi").unwrap().with(300, 2.0);
    let (workload, config) = (generate(&preset, Seed(4)).unwrap(), SimConfig::default());
    // The jobs that have come when a run ends or is broken off.
    let run = |name: &str, most: f64| {
        let mut planner = Counting(PolicyPlanner::new(heuristics::by_name(name).unwrap()), 0);
        let found = simulate_planner_within(&workload, &config, &mut planner, most).unwrap();
        (found.map(|found| found.metrics.avg_jct_s), planner.1)
    };
    let (good, all) = run("sjf-best-type", f64::INFINITY);
    assert_eq!((run("sjf-best-type", good.unwrap()).0, all), (good, 300));
    let (bad, _) = run("fifo", f64::INFINITY);
    assert!(bad > good.map(|good| 1.3 * good), "{bad:?} {good:?}");
    let (broken_off, come) = run("fifo", good.unwrap());
    assert!(broken_off.is_none() && come < 280, "{broken_off:?} {come}");
}

/// Counts the jobs that have come.
struct Counting<P>(P, usize);

impl<P: Planner> Planner for Counting<P> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.1 = cluster.jobs().len();
        self.0.plan(cluster)
    }
}
