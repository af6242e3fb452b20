//! Deals worked by hand, the slow obvious count, and what holds for every deal.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Capabilities, Cluster, JobState, Placement, Shape, Sharing, Slice};
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, TenantSpec};
use pleach_scheduler::physics::interference::PairEntry;
use pleach_scheduler::{ActionKind, GpuTypeId, JobId, NodeId, Planner, Time, heuristics};
use proptest::prelude::*;
use serde_json::json;

use crate::cores::Demand;
use crate::count::{Room, Wish, count};
use crate::test_clusters::{multi_type_cluster, running, submit, submit_for};
use crate::what_if::FreeResources;
use crate::{Dealer, PassOrder, make};

/// Nodes of GPUs; two jobs on the same GPUs each run at `beside` of their speed; a restart costs `restart_s`.
fn cluster_of(num_nodes: u32, gpus_per_node: u32, beside: f64, restart_s: f64) -> Cluster {
    let mut spec = ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes);
    spec.borrowing = true;
    cluster_from(spec, beside, restart_s)
}

/// The same, of two tenants with half of the GPUs each, which they may not exceed.
fn walled(num_nodes: u32, gpus_per_node: u32, beside: f64, restart_s: f64) -> Cluster {
    let mut spec = ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes);
    let tenant = |name: &str| TenantSpec {
        name: name.into(),
        quota_gpus: num_nodes * gpus_per_node / 2,
    };
    (spec.tenants, spec.borrowing) = (["a", "b"].map(tenant).into(), false);
    cluster_from(spec, beside, restart_s)
}

fn cluster_from(mut spec: ClusterSpec, beside: f64, restart_s: f64) -> Cluster {
    spec.pairs = vec![PairEntry {
        gpu_type: "GPU".into(),
        victim: "any".into(),
        neighbour: "any".into(),
        speed: beside,
    }];
    let class = ModelClass {
        name: "any".into(),
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        restart_cost_s: restart_s,
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    Cluster::new(&spec, &[class], capabilities).unwrap()
}

fn start(cluster: &mut Cluster, id: JobId, on: &[(u32, u64)]) {
    let slices = on.iter().map(|(node, gpus)| Slice {
        node: NodeId(*node),
        gpus: *gpus,
    });
    cluster.start(id, slices.collect::<Placement>());
}

fn at(planner: &mut dyn Planner, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
    cluster.advance(Time::from_secs_f64(now_s));
    planner.plan(cluster).unwrap();
    cluster.check();
    running(cluster)
}

fn seat_of(cluster: &Cluster, id: JobId) -> Vec<(u32, u64)> {
    let mut seat: Vec<(u32, u64)> = cluster
        .job(id)
        .placement
        .iter()
        .map(|slice| (slice.node.0, slice.gpus))
        .collect();
    seat.sort_unstable();
    seat
}

#[test]
fn the_least_served_job_stops_another_once_its_claim_is_good_enough() {
    // One GPU, floor 600 s, stay 1.5. After 300 s the runner's 900 s are 1.5 times the newcomer's 600 s, which is not more.
    let mut cluster = cluster_of(1, 1, 0.1, 0.0);
    let settings = json!({"order": {"floor_s": 600.0, "stay_gain": 1.5}, "rules": {"deal_min_s": 60.0}});
    let mut planner = make("las-deal", &settings).unwrap();
    for _ in 0..2 {
        submit(&mut cluster, 1, 1e5);
    }
    assert_eq!(at(planner.as_mut(), &mut cluster, 0.0), [0]);
    assert_eq!(at(planner.as_mut(), &mut cluster, 299.0), [0]);
    assert_eq!(at(planner.as_mut(), &mut cluster, 360.0), [1]);
    // Now the other way about: 600 + 360 times 1.5 is 1,440, that of job 1 after 840 s.
    assert_eq!(at(planner.as_mut(), &mut cluster, 360.0 + 839.0), [1]);
    assert_eq!(at(planner.as_mut(), &mut cluster, 360.0 + 900.0), [0]);
}

#[test]
fn between_two_deals_free_gpus_are_filled_and_nobody_is_stopped() {
    let mut cluster = cluster_of(1, 2, 0.1, 0.0);
    let settings = json!({"order": {"floor_s": 1.0, "stay_gain": 1.0}, "rules": {"deal_min_s": 100.0}});
    let mut planner = make("las-deal", &settings).unwrap();
    submit(&mut cluster, 1, 1e5);
    assert_eq!(at(planner.as_mut(), &mut cluster, 0.0), [0]);
    submit(&mut cluster, 1, 1e5);
    submit(&mut cluster, 1, 1e5);
    assert_eq!(at(planner.as_mut(), &mut cluster, 50.0), [0, 1]);
    assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(100.0)));
    assert_eq!(at(planner.as_mut(), &mut cluster, 99.0), [0, 1]);
    assert_eq!(at(planner.as_mut(), &mut cluster, 100.0), [1, 2]);
}

#[test]
fn who_was_started_is_left_alone_for_its_stint_and_so_is_who_shares_its_gpus() {
    // A restart costs 100 s, so a stint of 4 lasts 400 s; without one the newcomer comes first at once.
    for (stint, waits) in [(0.0, false), (4.0, true)] {
        let mut cluster = cluster_of(1, 2, 0.1, 100.0);
        let settings = json!({"order": {"floor_s": 1.0, "stay_gain": 1.0}, "rules": {"deal_min_s": 0.0, "stint": stint}});
        let mut planner = make("las-deal", &settings).unwrap();
        submit(&mut cluster, 2, 1e5);
        assert_eq!(at(planner.as_mut(), &mut cluster, 0.0), [0]);
        submit(&mut cluster, 2, 1e5);
        assert_eq!(
            at(planner.as_mut(), &mut cluster, 399.0),
            [if waits { 0 } else { 1 }]
        );
        if waits {
            assert_eq!(at(planner.as_mut(), &mut cluster, 400.0), [1]);
        }
    }
    // Beside each other: job 1 joins at 300 s, so neither is stopped before 700 s.
    let mut cluster = cluster_of(1, 2, 0.9, 100.0);
    let settings =
        json!({"order": {"floor_s": 1.0, "stay_gain": 1.0}, "rules": {"deal_min_s": 0.0, "stint": 4.0}});
    let mut planner = make("las-deal", &settings).unwrap();
    submit(&mut cluster, 2, 1e5);
    assert_eq!(at(planner.as_mut(), &mut cluster, 0.0), [0]);
    submit(&mut cluster, 2, 1e5);
    assert_eq!(at(planner.as_mut(), &mut cluster, 300.0), [0, 1]);
    submit(&mut cluster, 2, 1e5);
    assert_eq!(at(planner.as_mut(), &mut cluster, 699.0), [0, 1]);
    assert!(at(planner.as_mut(), &mut cluster, 700.0).contains(&2));
}

#[test]
fn each_order_deals_to_another_job_first() {
    // One node of 4 GPUs. Job 0 (2 GPUs, 5,000 s left, 1,000 s served), job 1 (4 GPUs, new, 9,000 s), job 2 (1 GPU, 2,000 s
    // served, 7,000 s left). Least service: 1. Shortest rest: 0, then 2. Rate: small gangs, 2 and 0.
    let first = |name: &str| {
        let mut cluster = cluster_of(1, 4, 0.1, 0.0);
        let jobs =
            [(2, 6000.0), (4, 9000.0), (1, 9000.0)].map(|(num, run_s)| submit(&mut cluster, num, run_s));
        start(&mut cluster, jobs[2], &[(0, 0b1)]);
        cluster.advance(Time::from_secs_f64(1000.0));
        start(&mut cluster, jobs[0], &[(0, 0b110)]);
        cluster.advance(Time::from_secs_f64(2000.0));
        let settings = json!({"order": {"floor_s": 1.0, "stay_gain": 1.0, "gpus_power": if name == "rate-deal" { 1.0 } else { 0.0 }}});
        let mut planner = make(name, &settings).unwrap();
        at(planner.as_mut(), &mut cluster, 2000.0)
    };
    assert_eq!(first("las-deal"), [1]);
    assert_eq!(first("gittins-deal"), [1], "nobody has ended: as least service");
    assert_eq!(first("srtf-deal"), [0, 2]);
    assert_eq!(first("rate-deal"), [0, 2]);
    assert_eq!(
        first("belief-deal"),
        [0, 2],
        "nobody has outlived its estimate: as shortest rest"
    );
}

#[test]
fn who_outlives_its_estimate_is_about_to_end_by_the_shortest_rest_and_long_by_the_belief() {
    let kept_by = |name: &str| {
        let mut cluster = cluster_of(1, 1, 0.1, 0.0);
        let late = submit(&mut cluster, 1, 100.0);
        start(&mut cluster, late, &[(0, 0b1)]);
        cluster.advance(Time::from_secs_f64(5000.0));
        submit(&mut cluster, 1, 1000.0);
        let mut planner = make(name, &json!({"order": {"floor_s": 1.0, "stay_gain": 1.0}})).unwrap();
        at(planner.as_mut(), &mut cluster, 5000.0)
    };
    assert_eq!(kept_by("srtf-deal"), [0]);
    assert_eq!(kept_by("belief-deal"), [1]);
}

#[test]
fn a_larger_gang_takes_a_node_and_the_smaller_one_on_it_moves() {
    // Two nodes of 4, one job of 1 GPU on each; a gang of 4 wants a node to itself.
    let mut cluster = cluster_of(2, 4, 0.1, 0.0);
    let small = [0, 1].map(|node| {
        let id = submit(&mut cluster, 1, 1e5);
        start(&mut cluster, id, &[(node, 0b1)]);
        id
    });
    let gang = submit(&mut cluster, 4, 1e5);
    let mut planner = make("las-deal", &serde_json::Value::Null).unwrap();
    assert_eq!(at(planner.as_mut(), &mut cluster, 0.0), [0, 1, 2]);
    assert_eq!(seat_of(&cluster, gang), [(0, 0b1111)]);
    assert_eq!(seat_of(&cluster, small[1]), [(1, 0b1)], "it was in nobody's way");
    assert_eq!(seat_of(&cluster, small[0]), [(1, 0b10)]);
    // Without re-seating the gang lies on both nodes.
    let mut cluster = cluster_of(2, 4, 0.1, 0.0);
    for node in [0, 1] {
        let id = submit(&mut cluster, 1, 1e5);
        start(&mut cluster, id, &[(node, 0b1)]);
    }
    let gang = submit(&mut cluster, 4, 1e5);
    let mut planner = make("las-deal", &json!({"rules": {"reseat": false}})).unwrap();
    at(planner.as_mut(), &mut cluster, 0.0);
    assert_eq!(seat_of(&cluster, gang), [(0, 0b1110), (1, 0b10)]);
}

#[test]
fn a_gang_leaves_a_loose_seat_when_that_has_cost_what_a_restart_costs() {
    // On two nodes instead of one a gang of 2 runs at LocalityFactors::PHILLY.more_nodes; a restart costs 90 s.
    let mut cluster = cluster_of(2, 2, 0.1, 90.0);
    let gang = submit(&mut cluster, 2, 1e6);
    start(&mut cluster, gang, &[(0, 0b1), (1, 0b1)]);
    let loss = 1.0 / LocalityFactors::PHILLY.more_nodes - 1.0;
    let due_s = 90.0 / loss;
    let mut planner = make("las-deal", &json!({"rules": {"deal_min_s": 0.0}})).unwrap();
    at(planner.as_mut(), &mut cluster, due_s - 1.0);
    assert_eq!(seat_of(&cluster, gang), [(0, 0b1), (1, 0b1)]);
    at(planner.as_mut(), &mut cluster, due_s + 1.0);
    assert_eq!(seat_of(&cluster, gang), [(0, 0b11)]);
    assert_eq!(
        planner.wake_at(&cluster),
        None,
        "no job waits and none could run better"
    );
}

#[test]
fn losers_join_gangs_of_their_size_where_the_sum_of_speeds_pays() {
    // Speeds of 0.6 add up to 1.2. One node of 3 GPUs: jobs 0 (2 GPUs) and 1 (1 GPU) win, job 2 (2 GPUs) joins job 0.
    for (beside, expected) in [(0.6, vec![0, 1, 2]), (0.5, vec![0, 1])] {
        let mut cluster = cluster_of(1, 3, beside, 0.0);
        for num_gpus in [2, 1, 2] {
            submit(&mut cluster, num_gpus, 1e5);
        }
        let mut planner = make("las-deal", &json!({"order": {"gpus_power": 0.0}})).unwrap();
        assert_eq!(at(planner.as_mut(), &mut cluster, 0.0), expected);
        if expected.len() == 3 {
            assert_eq!(seat_of(&cluster, JobId(2)), seat_of(&cluster, JobId(0)));
            // A pair that still pays stays together, and no job is stopped.
            at(planner.as_mut(), &mut cluster, 100.0);
            assert_eq!(
                cluster.job(JobId(2)).num_preemptions + cluster.job(JobId(0)).num_preemptions,
                0
            );
        }
    }
}

#[test]
fn the_best_type_goes_to_the_first_and_a_running_job_moves_there_when_it_is_free() {
    // One GPU of speed 1 and one of speed 4.
    let mut cluster = multi_type_cluster(&[1.0, 4.0], 1);
    let jobs = [0, 1].map(|_| submit(&mut cluster, 1, 1e5));
    let mut planner = make("las-deal", &serde_json::Value::Null).unwrap();
    at(planner.as_mut(), &mut cluster, 0.0);
    assert_eq!(jobs.map(|id| cluster.job(id).gpu_type.0), [1, 0]);
    cluster.finish(jobs[0]);
    at(planner.as_mut(), &mut cluster, 60.0);
    assert_eq!(cluster.job(jobs[1]).gpu_type, GpuTypeId(1));
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    for (settings, key) in [
        (json!({"rules": {"pack_above": 3.0}}), "las-deal.rules.pack_above"),
        (json!({"order": {"floor_s": 0.0}}), "las-deal.order.floor_s"),
        (json!({"order": {"stay_gain": 0.5}}), "las-deal.order.stay_gain"),
    ] {
        let text = make("las-deal", &settings).err().unwrap().to_string();
        assert!(text.contains(key), "{text}");
    }
    let defaults = crate::defaults("rate-deal");
    assert_eq!(defaults["order"]["gpus_power"], 1.0);
}

#[test]
fn a_formula_of_least_service_decides_as_that_order() {
    // The formula adds 60 s to the service; so does the order here.
    let order = json!({"floor_s": 60.0, "gpus_power": 0.5, "speed_power": 3.0, "advantage_power": 0.0, "stay_gain": 2.0});
    let mut classic = make("las-deal", &json!({"order": order})).unwrap();
    let weights = json!({"service": -1.0, "gang": -0.5, "speed": 3.0, "stays": 2_f64.ln()});
    let rules = crate::DealingRules::default();
    let mut learned = make("index", &json!({"weights": weights, "rules": rules})).unwrap();
    let mut num_stops = 0;
    let mut clusters = [0, 1].map(|_| cluster_of(2, 4, 0.6, 10.0));
    for step in 0..40_u32 {
        for (cluster, planner) in clusters.iter_mut().zip([&mut classic, &mut learned]) {
            submit(cluster, 1 + step * 7 % 5, 1e4);
            if step % 3 == 2
                && let Some(id) = cluster.running().min()
            {
                cluster.finish(id);
            }
            at(planner.as_mut(), cluster, f64::from(step) * 333.0);
        }
        for (one, other) in clusters[0].jobs().iter().zip(clusters[1].jobs()) {
            assert_eq!(one.placement, other.placement, "step {step}");
            num_stops += one.num_preemptions;
        }
    }
    assert!(num_stops > 0, "nobody was stopped: nothing was compared");
}

#[test]
fn the_reference_formula_can_be_read_and_says_what_it_does() {
    let formula = crate::reference_formula().unwrap();
    formula.validate("index").unwrap();
    let text = formula.text();
    assert!(
        text.starts_with("score =\n") && text.contains("service"),
        "{text}"
    );
    let wrong = json!({"weights": {"no_such_feature": 1.0}});
    let error = make("index", &wrong).err().unwrap().to_string();
    assert!(
        error.contains("no_such_feature") && error.contains("pleach policies --features"),
        "{error}"
    );
    let newer = make("index", &json!({"version": 3})).err().unwrap().to_string();
    assert!(newer.contains("index.version"), "{newer}");
    // Weights that are given are all weights.
    let only = crate::formula_of(&json!({"weights": {"gang": -1.0}})).unwrap();
    assert_eq!(only.weights.len(), 1);
}

/// Which jobs got how many GPUs of which type.
type Granted = Vec<(JobId, GpuTypeId, u32)>;

/// The count as one would say it: go through the wishes from the best. A job that has nothing may begin, and one that has just
/// what a step builds on may take it, if GPUs and quota are there. What was passed over once stays so, for less is left later.
fn slow_count(cluster: &Cluster, wishes: &[Wish], mut left: BTreeMap<GpuTypeId, u32>) -> Granted {
    let mut granted: Granted = Vec::new();
    let quota_left = |granted: &Granted, tenant| {
        let of_tenant = granted
            .iter()
            .filter(|(id, ..)| cluster.job(*id).request.tenant == tenant);
        let used: u32 = of_tenant.map(|(.., num_gpus)| num_gpus).sum();
        cluster.tenant(tenant).quota_gpus.saturating_sub(used)
    };
    let mut asked: Vec<bool> = vec![false; wishes.len()];
    while let Some(at) = (0..wishes.len()).filter(|at| !asked[*at]).reduce(|best, at| {
        let key = |wish: &Wish| (wish.job, wish.kind, wish.num_gpus);
        let (one, other) = (&wishes[best], &wishes[at]);
        let better = other.score > one.score || (other.score == one.score && key(other) < key(one));
        if better { at } else { best }
    }) {
        asked[at] = true;
        let wish = &wishes[at];
        let more = wish.num_gpus - wish.after;
        let has = granted.iter().find(|(id, ..)| *id == wish.job).copied();
        let may = match has {
            None => wish.after == 0,
            Some((_, kind, num_gpus)) => kind == wish.kind && wish.after > 0 && num_gpus == wish.after,
        };
        let tenant = cluster.job(wish.job).request.tenant;
        if may && more <= left[&wish.kind] && (cluster.borrowing() || more <= quota_left(&granted, tenant)) {
            *left.get_mut(&wish.kind).unwrap() -= more;
            granted.retain(|(id, ..)| *id != wish.job);
            granted.push((wish.job, wish.kind, wish.num_gpus));
        }
    }
    granted.sort_unstable();
    granted
}

/// A job's gang, tenant and whether it ends before the next deal.
fn jobs() -> impl Strategy<Value = Vec<(u32, u16, bool)>> {
    let size = prop_oneof![Just(1_u32), Just(1), Just(2), Just(3), Just(4), Just(6), Just(8)];
    proptest::collection::vec((size, 0_u16..2, any::<bool>()), 1..24)
}

proptest! {
    #[test]
    fn the_count_is_that_of_the_slow_obvious_version(
        jobs in jobs(),
        scores in proptest::collection::vec((0_u8..6, 0_u8..6), 24),
        has_quotas in any::<bool>(),
    ) {
        let mut cluster = if has_quotas { walled(4, 4, 0.5, 0.0) } else { multi_type_cluster(&[1.0, 1.0], 8) };
        let num_types = cluster.num_types();
        let tenant = |job: &(u32, u16, bool)| if has_quotas { job.1 } else { 0 };
        let ids: Vec<JobId> =
            jobs.iter().map(|job| submit_for(&mut cluster, tenant(job), job.0, 1e5)).collect();
        let mut wishes: Vec<Wish> = Vec::new();
        for (id, score) in ids.iter().zip(&scores) {
            for (kind, score) in [score.0, score.1].into_iter().enumerate().take(num_types) {
                // Every third job may have twice and three times its gang too.
                let asked = cluster.job(*id).request.num_gpus;
                let most = if id.0 % 3 == 0 { 3 } else { 1 };
                for step in 0..most {
                    wishes.push(Wish {
                        score: f64::from(score) - 0.7 * f64::from(step),
                        job: *id,
                        kind: GpuTypeId(kind as u8),
                        after: step * asked,
                        num_gpus: (step + 1) * asked,
                        demand: Demand::fixed(Shape::PLAIN),
                    });
                }
            }
        }
        let kinds = (0..num_types).map(|kind| GpuTypeId(kind as u8));
        let left = kinds.map(|kind| (kind, cluster.num_gpus_of(kind))).collect();
        let slow = slow_count(&cluster, &wishes, left);
        let place = |wish: &Wish| (wish.job, wish.kind, wish.num_gpus);
        wishes.sort_by(|a, b| b.score.total_cmp(&a.score).then(place(a).cmp(&place(b))));
        let free = FreeResources::as_is(&cluster);
        let mut room = Room::of(&cluster, &free, &[]);
        let fast = count(&cluster, &wishes, &mut room, &mut vec![false; ids.len()]);
        let mut fast: Granted = fast.iter().map(|wish| (wish.job, wish.kind, wish.num_gpus)).collect();
        fast.sort_unstable();
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn no_gpu_is_dealt_twice_no_seat_moves_without_a_cause_and_the_same_cluster_gets_the_same_deal(
        waves in proptest::collection::vec(jobs(), 1..5),
        name in proptest::sample::select(vec!["las-deal", "srtf-deal", "gittins-deal", "belief-deal", "rate-deal", "deal:sjf", "deal:las"]),
        beside in proptest::sample::select(vec![0.3, 0.7]),
        stay_gain in proptest::sample::select(vec![1.0, 2.0]),
        stint in proptest::sample::select(vec![0.0, 20.0]),
    ) {
        let mut cluster = walled(4, 4, beside, 10.0);
        let settings = json!({"order": {"stay_gain": stay_gain}, "rules": {"deal_min_s": 0.0, "stint": stint}});
        let (mut planner, mut twin) = (dealer(name, &settings), dealer(name, &settings));
        for (number, wave) in waves.into_iter().enumerate() {
            for id in cluster.running().collect::<Vec<_>>() {
                if wave.get(id.index() % wave.len()).is_some_and(|job| job.2) {
                    cluster.finish(id);
                }
            }
            for (num_gpus, tenant, _) in &wave {
                submit_for(&mut cluster, *tenant, *num_gpus, f64::from(*num_gpus) * 1e3);
            }
            let before = cluster.clone();
            let now_s = 700.0 * (number + 1) as f64;
            at(planner.as_mut(), &mut cluster, now_s);
            let mut other = before.clone();
            at(twin.as_mut(), &mut other, now_s);
            check_moves(&before, &cluster);
            for (one, two) in cluster.jobs().iter().zip(other.jobs()) {
                prop_assert_eq!(&one.placement, &two.placement);
            }
        }
    }
}

/// A planner that deals in an order, or by the passes of a heuristic.
fn dealer(name: &str, settings: &serde_json::Value) -> Box<dyn Planner> {
    let Some(heuristic) = name.strip_prefix("deal:") else {
        return make(name, settings).unwrap();
    };
    let rules = serde_json::from_value(settings["rules"].clone()).unwrap();
    let order = PassOrder::new(heuristics::by_name(heuristic).unwrap());
    Box::new(Dealer::new(name, rules, order).unwrap())
}

/// A job that moved while it ran lay loose, shares GPUs or did before, or one of its GPUs' new owners is at least as large: a
/// gang that had to leave its own seat may take that of an equal whose turn comes later.
fn check_moves(before: &Cluster, after: &Cluster) {
    for (index, old) in before.jobs().iter().enumerate() {
        let id = JobId(index as u32);
        let new = after.job(id);
        let moved = old.state == JobState::Running
            && new.state == JobState::Running
            && old.placement != new.placement;
        if !moved {
            continue;
        }
        let was_loose = before.job_facts(id, &old.placement).locality < 1.0;
        let was_beside = old.is_sharing;
        let is_guest = new.is_sharing;
        let larger = old.placement.iter().any(|slice| {
            let mut gpus = (0..64).filter(|gpu| slice.gpus >> gpu & 1 == 1);
            gpus.any(|gpu| {
                let owners = after.residents(slice.node, gpu);
                owners
                    .iter()
                    .any(|owner| *owner != id && after.job(*owner).request.num_gpus >= old.request.num_gpus)
            })
        });
        assert!(
            was_loose || was_beside || is_guest || larger,
            "{id:?} moved from {:?} to {:?}",
            old.placement,
            new.placement
        );
    }
}
