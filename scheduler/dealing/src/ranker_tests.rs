//! Orders worked by hand and by a slow obvious rule, and what a batch system makes of them.

use proptest::prelude::*;

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{JobId, Planner, PolicyPlanner, Time, heuristics};

use crate::test_clusters::{place, preemptive_cluster, running, submit};
use crate::{InOrder, RANKED_MAX, Ranked, Ranker, RoundDealer, Trust};

fn ranker(name: &str) -> Ranker {
    Ranker::by_policy(heuristics::by_name(name).unwrap())
}

fn rank(name: &str, cluster: &Cluster) -> Vec<u32> {
    numbers(&ranker(name).rank(cluster).unwrap())
}

fn numbers(ranked: &Ranked) -> Vec<u32> {
    ranked.jobs.iter().map(|id| id.0).collect()
}

#[test]
fn who_starts_now_comes_first_and_the_others_as_on_an_emptied_cluster() {
    // Four GPUs, three of them held: of the waiting jobs only job 3 fits now, though it is the longest.
    let mut cluster = preemptive_cluster(1, 4);
    let holder = submit(&mut cluster, 3, 100.0);
    place(&mut cluster, holder);
    for (num_gpus, estimate_s) in [(4, 300.0), (2, 200.0), (1, 900.0), (2, 100.0)] {
        submit(&mut cluster, num_gpus, estimate_s);
    }
    let ranked = ranker("sjf").rank(&cluster).unwrap();
    assert_eq!(numbers(&ranked), [3, 4, 2, 1]);
    let now: Vec<JobId> = ranked.now.iter().map(|(made, _)| made.row).collect();
    assert_eq!((now, ranked.num_ranked), (vec![JobId(3)], 4));
    // By arrival no job starts now: the first does not fit.
    assert_eq!(rank("fifo", &cluster), [1, 2, 3, 4]);
    // EASY holds back for the first; nothing may start beside it that ends later, and job 4 does not fit.
    assert_eq!(rank("easy", &cluster), [1, 2, 3, 4]);
    assert_eq!(running(&cluster), [0], "nothing is carried out");
}

#[test]
fn for_whom_gpus_are_held_back_comes_right_behind_those_that_start() {
    let mut cluster = preemptive_cluster(1, 4);
    let holder = submit(&mut cluster, 3, 1000.0);
    place(&mut cluster, holder);
    // The shortest does not fit, and is reserved for; job 3 ends before it and starts now; job 2 would not.
    for (num_gpus, estimate_s) in [(4, 10.0), (1, 5000.0), (1, 20.0)] {
        submit(&mut cluster, num_gpus, estimate_s);
    }
    assert_eq!(rank("sjf-reserve", &cluster), [3, 1, 2]);
}

#[test]
fn who_never_fits_and_who_is_beyond_the_bound_comes_last_by_arrival() {
    let mut cluster = preemptive_cluster(2, 2);
    let waiting = RANKED_MAX + 200;
    for number in 0..waiting {
        submit(&mut cluster, 1 + (number % 2) as u32, 1e6 - number as f64);
    }
    let ranked = ranker("sjf").rank(&cluster).unwrap();
    assert_eq!((ranked.jobs.len(), ranked.num_ranked), (waiting, RANKED_MAX));
    assert!(
        ranked.jobs[RANKED_MAX..].is_sorted(),
        "the rest came in this order"
    );
    let mut all = numbers(&ranked);
    all.sort_unstable();
    assert_eq!(all, (0..waiting as u32).collect::<Vec<_>>());
    // All of its nodes drain: no job starts, and the order is that of arrival.
    for node in [0, 1] {
        let down = pleach_scheduler::cluster::NodeState::Down;
        cluster.set_node_state(pleach_scheduler::NodeId(node), down, &mut Vec::new());
    }
    let ranked = ranker("sjf").rank(&cluster).unwrap();
    assert!(ranked.num_ranked == 0 && ranked.jobs.is_sorted());
}

#[test]
fn who_would_stop_others_is_asked_for_its_order_alone() {
    let mut cluster = preemptive_cluster(1, 2);
    let long = submit(&mut cluster, 2, 1e5);
    place(&mut cluster, long);
    for estimate_s in [300.0, 100.0, 200.0] {
        submit(&mut cluster, 2, estimate_s);
    }
    for name in ["srtf", "sjf"] {
        assert_eq!(rank(name, &cluster), [2, 3, 1], "{name}");
    }
    assert_eq!(cluster.job(long).num_preemptions, 0);
}

#[test]
fn a_dealer_ranks_by_its_scores() {
    let mut cluster = preemptive_cluster(1, 4);
    for (num_gpus, estimate_s) in [(4, 400.0), (1, 50.0), (2, 300.0), (1, 10.0)] {
        submit(&mut cluster, num_gpus, estimate_s);
    }
    let dealer = RoundDealer::by_name("srtf-deal").unwrap();
    let scores = dealer.scores(&cluster, Trust::default(), true).unwrap();
    let kind = pleach_scheduler::GpuTypeId(0);
    let mut expected: Vec<u32> = (0..4).collect();
    expected.sort_by(|a, b| {
        let of = |id: &u32| scores.of(&cluster, JobId(*id), kind);
        of(b).total_cmp(&of(a))
    });
    let ranked = Ranker::by_scores(dealer).rank(&cluster).unwrap();
    assert_eq!(numbers(&ranked), expected);
    assert_eq!(expected[0], 3, "the shortest of one GPU");
    assert!(ranked.now.is_empty() && ranked.num_ranked == 4);
}

#[test]
fn late_it_ranks_those_who_had_their_turn() {
    let mut cluster = preemptive_cluster(1, 2);
    for estimate_s in [500.0, 400.0, 300.0, 200.0, 100.0] {
        submit(&mut cluster, 2, estimate_s);
    }
    let mut asked = 0;
    let mut late_after = |most: usize| {
        asked = 0;
        let mut is_late = || {
            asked += 1;
            asked > most
        };
        let ranked = ranker("sjf").rank_until(&cluster, &mut |_, _| Ok(String::new()), &mut is_late);
        ranked
            .unwrap()
            .map(|ranked| (numbers(&ranked), ranked.num_ranked))
    };
    assert_eq!(late_after(0), None);
    assert_eq!(late_after(1), Some((vec![4, 0, 1, 2, 3], 1)));
    assert_eq!(late_after(3), Some((vec![4, 3, 2, 0, 1], 3)));
}

/// Plans of a planner at the starts and believed ends of jobs, until all have run: when which job started.
fn starts(planner: &mut dyn Planner, cluster: &mut Cluster) -> Vec<(i64, u32)> {
    let mut starts = Vec::new();
    for _ in 0..1000 {
        let before = running(cluster);
        planner.plan(cluster).unwrap();
        cluster.check();
        let now = cluster.now();
        starts.extend(
            running(cluster)
                .into_iter()
                .filter(|id| !before.contains(id))
                .map(|id| (now.0, id)),
        );
        let Some((end, id)) = cluster
            .running_of(pleach_scheduler::GpuTypeId(0))
            .first()
            .copied()
        else {
            break;
        };
        cluster.advance(end.max(now));
        cluster.finish(id);
    }
    starts
}

#[test]
fn along_an_order_the_first_that_does_not_fit_is_not_delayed_by_those_behind_it() {
    // Four GPUs; job 0 holds two until 100 s. By arrival: job 1 wants all four, job 2 would end at 150 s and waits for it, job 3 ends
    // at 90 s and starts beside it.
    let mut cluster = preemptive_cluster(1, 4);
    for (num_gpus, estimate_s) in [(2, 100.0), (4, 50.0), (1, 150.0), (1, 90.0)] {
        submit(&mut cluster, num_gpus, estimate_s);
    }
    let mut planner = InOrder::new("order:fifo", ranker("fifo"));
    let second = |s: u64| Time::from_secs_f64(s as f64).0;
    let expected = [(0, 0), (0, 3), (second(100), 1), (second(150), 2)];
    assert_eq!(starts(&mut planner, &mut cluster), expected);
    assert_eq!(planner.name(), "order:fifo");
}

fn cluster_with(jobs: &[(u32, u32)]) -> Cluster {
    let mut cluster = preemptive_cluster(1, 8);
    for (num_gpus, estimate_s) in jobs {
        submit(&mut cluster, *num_gpus, f64::from(*estimate_s));
    }
    cluster
}

/// Shortest first on one emptied node of eight GPUs after the other, with nothing but additions.
fn shortest_first(jobs: &[(u32, u32)]) -> Vec<u32> {
    let mut waits: Vec<u32> = (0..jobs.len() as u32).collect();
    let mut order = Vec::new();
    while !waits.is_empty() {
        let mut free = 8;
        while let Some(next) = waits
            .iter()
            .copied()
            .filter(|id| jobs[*id as usize].0 <= free)
            .min_by_key(|id| (jobs[*id as usize].1, *id))
        {
            free -= jobs[next as usize].0;
            waits.retain(|id| *id != next);
            order.push(next);
        }
    }
    order
}

proptest! {
    #[test]
    fn the_shortest_comes_first_as_a_slow_rule_has_it(
        jobs in proptest::collection::vec((1_u32..=8, 1_u32..1000), 1..30),
    ) {
        let cluster = cluster_with(&jobs);
        let mut ranker = ranker("sjf");
        let ranked = ranker.rank(&cluster).unwrap();
        prop_assert_eq!(numbers(&ranked), shortest_first(&jobs));
        prop_assert_eq!(ranker.rank(&cluster).unwrap(), ranked, "asked again it says the same");
    }

    /// EASY is the order of arrival with backfill, and nothing of it needs more than an order.
    #[test]
    fn the_order_of_arrival_with_backfill_is_easy(
        jobs in proptest::collection::vec((1_u32..=8, 1_u32..1000), 1..30),
    ) {
        let mut in_order = InOrder::new("order", ranker("fifo"));
        let mut easy = PolicyPlanner::new(heuristics::by_name("easy").unwrap());
        prop_assert_eq!(
            starts(&mut in_order, &mut cluster_with(&jobs)),
            starts(&mut easy, &mut cluster_with(&jobs))
        );
    }
}
