//! Each heuristic on a node of 4 GPUs, worked by hand.

use super::sim::{Arrival, node_of, schedule};
use crate::cluster::{Capabilities, Cluster};
use crate::cluster_spec::{ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup};
use crate::{ActionKind, ActionSet};

const PREEMPTIVE: Capabilities = Capabilities {
    restart_cost_s: 30.0,
    ..Capabilities::DEFAULT.with(ActionKind::Preempt)
};

fn starts(name: &str, jobs: &[Arrival]) -> Vec<i64> {
    let mut cluster = node_of(4, Capabilities::default());
    let schedule = schedule(&mut cluster, name, jobs);
    schedule.iter().map(|(start, _)| *start).collect()
}

fn finishes(name: &str, capabilities: Capabilities, jobs: &[Arrival]) -> Vec<i64> {
    let schedule = schedule(&mut node_of(4, capabilities), name, jobs);
    schedule.iter().map(|(_, finish)| *finish).collect()
}

#[test]
fn fifo_lets_the_oldest_job_block_and_fifo_skip_passes_over_it() {
    // 3 GPUs run until 100 s; the job of 2 does not fit beside them, the job of 1 would.
    let jobs = [Arrival(0, 3, 100, 0), Arrival(0, 2, 10, 0), Arrival(0, 1, 10, 0)];
    assert_eq!(starts("fifo", &jobs), [0, 100, 100]);
    assert_eq!(starts("fifo-skip", &jobs), [0, 100, 0]);
}

#[test]
fn sjf_takes_the_two_shortest_of_three() {
    let jobs = [
        Arrival(0, 2, 300, 0),
        Arrival(0, 2, 100, 0),
        Arrival(0, 2, 200, 0),
    ];
    assert_eq!(starts("sjf", &jobs), [100, 0, 0]);
}

#[test]
fn gpu_time_takes_a_long_thin_job_before_a_short_wide_one() {
    // 4 GPUs x 100 s = 400 GPU·s against 1 GPU x 300 s = 300 GPU·s.
    let jobs = [Arrival(0, 4, 100, 0), Arrival(0, 1, 300, 0)];
    assert_eq!(starts("gpu-time", &jobs), [300, 0]);
    assert_eq!(starts("sjf", &jobs), [0, 100]);
}

#[test]
fn srtf_stops_a_job_only_if_the_newcomer_and_a_restart_end_before_it() {
    // At 100 s, 900 s remain. 200 + 30 < 900: stopped, then 30 s of restart and the 900 s from 300 s on.
    let short = [Arrival(0, 4, 1000, 0), Arrival(100, 4, 200, 0)];
    assert_eq!(finishes("srtf", PREEMPTIVE, &short), [1230, 300]);
    // 870 + 30 is not less than 900: the newcomer waits.
    let long = [Arrival(0, 4, 1000, 0), Arrival(100, 4, 870, 0)];
    assert_eq!(finishes("srtf", PREEMPTIVE, &long), [1000, 1870]);
    // A cluster that cannot preempt makes it sjf.
    assert_eq!(finishes("srtf", Capabilities::default(), &short), [1000, 1200]);
}

#[test]
fn las_stops_a_job_when_a_tick_finds_it_in_a_higher_class() {
    // 4 GPUs reach 3250 GPU·s after 812.5 s. Passes at 0, 100 and, by the tick of 300 s, 400, 700 and 1000 s: the last
    // one finds class 1, and the newcomer runs until 1500 s (2000 GPU·s, still class 0). Then 30 s of restart, 1000 s.
    let jobs = [Arrival(0, 4, 2000, 0), Arrival(100, 4, 500, 1)];
    assert_eq!(finishes("las", PREEMPTIVE, &jobs), [2530, 1500]);
    assert_eq!(finishes("las", Capabilities::default(), &jobs), [2000, 2500]);
}

#[test]
fn easy_backfills_what_does_not_delay_the_head() {
    // Job 0 holds 3 until 100 s; job 1 wants all 4 and reserves 100 s, extra 0. On the free GPU, job 2 would end at 200 s, job 3
    // at 100 s, job 4 at 20 s. By arrival job 3 goes first; by run time job 4, and then no other.
    let jobs = [
        Arrival(0, 3, 100, 0),
        Arrival(0, 4, 50, 0),
        Arrival(0, 1, 200, 0),
        Arrival(0, 1, 100, 0),
        Arrival(0, 1, 20, 0),
    ];
    assert_eq!(starts("easy", &jobs), [0, 100, 150, 0, 150]);
    assert_eq!(starts("easy-sjf", &jobs), [0, 100, 150, 150, 0]);
    // Without reservations nothing is backfilled, rather than starving the head.
    let capabilities = Capabilities {
        granted: ActionSet::NONE,
        ..Capabilities::default()
    };
    let schedule = schedule(&mut node_of(4, capabilities), "easy", &jobs);
    assert!(schedule.iter().skip(2).all(|(start, _)| *start == 150));
}

#[test]
fn easy_gives_each_extra_gpu_away_only_once() {
    // On 8 GPUs, job 0 holds 4 until 100 s. Job 1 wants 6 and reserves 100 s; 2 GPUs are extra. Job 2 takes them for
    // 500 s; job 3 would take two more and waits.
    let jobs = [
        Arrival(0, 4, 100, 0),
        Arrival(0, 6, 50, 0),
        Arrival(0, 2, 500, 0),
        Arrival(0, 2, 500, 0),
    ];
    let schedule = schedule(&mut node_of(8, PREEMPTIVE), "easy", &jobs);
    assert_eq!(
        schedule.iter().map(|job| job.0).collect::<Vec<_>>(),
        [0, 100, 0, 150]
    );
}

#[test]
fn the_reserving_orders_keep_gpus_for_their_own_head() {
    // Job 0 holds 3 until 100 s. Job 1 (4 GPUs) is the shortest and the smallest. Job 2 ends at 90 s; then job 3 would
    // end at 185 s: sjf starts it and the wide job waits, sjf-reserve does not.
    let jobs = [
        Arrival(0, 3, 100, 0),
        Arrival(10, 4, 10, 0),
        Arrival(10, 1, 80, 0),
        Arrival(10, 1, 95, 0),
    ];
    assert_eq!(starts("sjf", &jobs), [0, 185, 10, 90]);
    assert_eq!(starts("sjf-reserve", &jobs), [0, 100, 10, 110]);
    assert_eq!(starts("gpu-time", &jobs), [0, 185, 10, 90]);
    assert_eq!(starts("gpu-time-reserve", &jobs), [0, 100, 10, 110]);
}

#[test]
fn fair_share_gives_the_second_gang_to_the_tenant_that_holds_nothing() {
    let jobs = [
        Arrival(0, 2, 100, 0),
        Arrival(0, 2, 100, 0),
        Arrival(0, 2, 100, 1),
    ];
    assert_eq!(starts("fair-share", &jobs), [0, 100, 0]);
}

#[test]
fn packing_starts_the_largest_gang_first() {
    let jobs = [
        Arrival(0, 1, 100, 0),
        Arrival(0, 1, 100, 0),
        Arrival(0, 3, 100, 0),
    ];
    assert_eq!(starts("packing", &jobs), [0, 100, 0]);
}

/// Pairs of GPUs and one node of eight, equally fast, as on Philly: the type of the pairs is always offered first.
#[test]
fn best_type_delay_starts_where_nothing_better_will_ever_be_offered() {
    let mut spec = ClusterSpec::uniform(3, 2, 3);
    let second = GpuTypeSpec {
        name: "wide".into(),
        ..spec.gpu_types[0].clone()
    };
    let wide = NodeGroup {
        count: 1,
        gpus_per_node: 8,
        gpu_type: "wide".into(),
        nodes_per_rack: 1,
        ..NodeGroup::default()
    };
    spec.gpu_types.push(second);
    spec.node_groups.push(wide);
    spec.tenants[0].quota_gpus = 14;
    let starts = |speed: [f64; 2], jobs: &[Arrival]| -> Vec<i64> {
        let class = ModelClass {
            name: "any".into(),
            speed: speed.into(),
            locality: LocalityFactors::PHILLY,
            ..ModelClass::default()
        };
        let mut cluster = Cluster::new(&spec, &[class], Capabilities::default()).unwrap();
        let schedule = schedule(&mut cluster, "best-type-delay", jobs);
        schedule.iter().map(|(start, _)| *start).collect()
    };
    // A gang of four takes two pairs, slower than the node of eight would be, on which it is not offered. Its patience is half its run
    // time, an hour.
    let gang = [Arrival(0, 1, 100_000, 0), Arrival(10, 4, 7200, 0)];
    assert_eq!(starts([1.0, 1.0], &gang), [0, 3610]);
    // A short one has none.
    let short = [Arrival(0, 1, 100_000, 0), Arrival(10, 4, 1800, 0)];
    assert_eq!(starts([1.0, 1.0], &short), [0, 10]);
    // Where the wide node is twice as fast it comes first, and the gang is there at once.
    assert_eq!(starts([0.5, 1.0], &gang), [0, 10]);
}
