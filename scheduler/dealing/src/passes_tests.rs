//! Passes worked by hand: which jobs keep their GPUs, which are stopped, which move.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_scheduler::{JobId, Planner, Time, heuristics};

use crate::test_clusters::{multi_type_cluster, preemptive_cluster, running, submit};
use crate::{Dealer, DealingRules, PassOrder, policy_planner};

fn at(planner: &mut dyn Planner, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
    cluster.advance(Time::from_secs_f64(now_s));
    planner.plan(cluster).unwrap();
    cluster.check();
    running(cluster)
}

/// Deals every second if something happens, and may move any job.
fn eager(heuristic: &str) -> impl Planner {
    let rules = DealingRules {
        deal_min_s: 0.0,
        ..DealingRules::default()
    };
    Dealer::new(
        "eager",
        rules,
        PassOrder::new(heuristics::by_name(heuristic).unwrap()),
    )
    .unwrap()
}

#[test]
fn a_shorter_job_takes_the_gpus_of_a_longer_one_and_gives_them_back() {
    let mut cluster = preemptive_cluster(1, 2);
    let mut planner = eager("sjf");
    let long = submit(&mut cluster, 2, 1000.0);
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
    submit(&mut cluster, 1, 100.0);
    assert_eq!(at(&mut planner, &mut cluster, 10.0), [1]);
    assert_eq!(cluster.job(long).num_preemptions, 1);
    cluster.finish(JobId(1));
    assert_eq!(at(&mut planner, &mut cluster, 110.0), [0]);
}

#[test]
fn who_is_chosen_again_keeps_its_gpus_and_who_is_fastest_elsewhere_moves() {
    // Types of speed 1 and 2 with one GPU each: the short job has the fast one, the other comes to it later.
    let mut cluster = multi_type_cluster(&[1.0, 2.0], 1);
    let mut planner = eager("sjf");
    submit(&mut cluster, 1, 50.0);
    submit(&mut cluster, 1, 1e6);
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 1]);
    let seats = |cluster: &Cluster| [0, 1].map(|id| cluster.job(JobId(id)).gpu_type.0);
    assert_eq!(seats(&cluster), [1, 0]);
    // Nothing has happened: no job is stopped.
    at(&mut planner, &mut cluster, 5.0);
    assert_eq!([0, 1].map(|id| cluster.job(JobId(id)).num_preemptions), [0, 0]);
    cluster.finish(JobId(0));
    assert_eq!(at(&mut planner, &mut cluster, 25.0), [1]);
    assert_eq!(cluster.job(JobId(1)).gpu_type.0, 1);
}

#[test]
fn a_policy_that_holds_leaves_gpus_free() {
    // A gang of two waits; `sjf-reserve` holds the GPU that is free for it rather than give it to a long job.
    let mut cluster = preemptive_cluster(1, 2);
    let rules = DealingRules {
        preempt: false,
        ..DealingRules::default()
    };
    let policy = heuristics::by_name("sjf-reserve").unwrap();
    let mut planner = Dealer::new("holding", rules, PassOrder::new(policy)).unwrap();
    submit(&mut cluster, 1, 100.0);
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
    submit(&mut cluster, 2, 200.0);
    submit(&mut cluster, 1, 1000.0);
    assert_eq!(at(&mut planner, &mut cluster, 10.0), [0]);
    // The same deal without holding would have filled it.
    let mut filling = Dealer::new(
        "filling",
        rules,
        PassOrder::new(heuristics::by_name("sjf").unwrap()),
    )
    .unwrap();
    assert_eq!(at(&mut filling, &mut cluster, 11.0), [0, 2]);
}

#[test]
fn nobody_is_stopped_before_four_restarts_have_passed() {
    let mut spec = ClusterSpec::uniform(1, 1, 1);
    spec.borrowing = true;
    let mut cluster = crate::test_clusters::cluster_of(&spec);
    let cost_s = cluster.capabilities().restart_cost_s;
    assert!(cost_s > 0.0);
    let mut planner = policy_planner("sjf", heuristics::by_name("sjf").unwrap()).unwrap();
    submit(&mut cluster, 1, 1e5);
    assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
    submit(&mut cluster, 1, 10.0);
    // Deals are at least 60 s apart; four restarts are more.
    assert!(4.0 * cost_s > 60.0, "{cost_s}");
    assert_eq!(at(&mut planner, &mut cluster, 4.0 * cost_s - 1.0), [0]);
    assert_eq!(at(&mut planner, &mut cluster, 4.0 * cost_s + 60.0), [1]);
}
