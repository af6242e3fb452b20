//! Networks layer by layer: nothing is lost, queues whose waits are known, and the best order by brute force.

use pleach_rooms::layers::{
    Model, POLICIES, Profiles, Queue, Request, RequestGenerator, Requests, SCHEMA, Scheduler, ScorerLayers,
    by_name, simulate,
};
use pleach_scheduler::Problem;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta};
use pleach_workloads::Seed;
use proptest::prelude::*;

fn drawn(profiles: &str, num_requests: usize, rate_per_s: f64, seed: u64) -> Requests {
    let generator = RequestGenerator {
        num_requests,
        rate_per_s,
        multiplier: 10.0,
        hot: None,
    };
    generator
        .draw(&Profiles::by_name(profiles).unwrap(), Seed(seed))
        .unwrap()
}

/// Models of layers of equal means, whose samples take what is given.
fn toy(models: &[&[f64]], requests: &[(u64, usize, &[u32])]) -> Requests {
    let model =
        |(number, layers): (usize, &&[f64])| Model::new(format!("m{number}"), vec![layers.to_vec()]).unwrap();
    let profiles = Profiles {
        models: models.iter().enumerate().map(model).collect(),
        spread: 0.0,
        correlation: 0.0,
    };
    let row = |(arrival_us, model, latencies_us): &(u64, usize, &[u32])| Request {
        arrival_us: *arrival_us,
        deadline_us: arrival_us + 1_000_000,
        model: *model,
        pattern: 0,
        priority: 1,
        latencies_us: latencies_us.to_vec(),
    };
    Requests::new(profiles, requests.iter().map(row).collect()).unwrap()
}

/// Takes whose last layer is longest ago: round robin, and processor sharing where layers are short.
struct RoundRobin;

impl Scheduler for RoundRobin {
    fn choose(&mut self, queue: &mut Queue<'_>) -> Result<usize, Problem> {
        let rows = queue.waiting.iter().enumerate();
        Ok(rows.min_by_key(|(_, row)| (row.last_ran_us, row.id)).unwrap().0)
    }
}

#[test]
fn every_policy_serves_all_once_does_the_same_work_and_repeats_itself() {
    for (profiles, rate) in [("attention-1", 35.0), ("cnn-1", 4.0)] {
        let list = drawn(profiles, 400, rate, 1);
        let work_us: u64 = list.rows().iter().map(Request::isolated_us).sum();
        let mut ends = Vec::new();
        for policy in POLICIES
            .iter()
            .map(|info| info.name)
            .chain(["dysta:last=3", "dysta:sample=true"])
        {
            let play = |num| simulate(&list, num, by_name(policy).unwrap().as_mut()).unwrap();
            let (one, three) = (play(1), play(3));
            assert_eq!(one, play(1), "{policy}");
            assert_eq!((one.busy_us, three.busy_us), (work_us, work_us), "{policy}");
            assert!(one.antt() > three.antt() && three.antt() >= 1.0, "{policy}");
            ends.push(one.requests.iter().map(|served| served.finish_us).max().unwrap());
        }
        // One accelerator that never idles while a request waits ends at one time, whichever goes first.
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?}");
    }
}

/// Pollaczek and Khinchine: the mean wait is lambda E[S^2] / (2 (1 - rho)).
#[test]
fn first_come_first_served_waits_as_an_m_g_1_queue_does() {
    let rate_per_s = 22.0;
    let list = drawn("attention-1", 200_000, rate_per_s, 2);
    let sizes: Vec<f64> = list
        .rows()
        .iter()
        .map(|row| row.isolated_us() as f64 / 1e6)
        .collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let squares: Vec<f64> = sizes.iter().map(|size| size * size).collect();
    let load = rate_per_s * mean(&sizes);
    let expected = rate_per_s * mean(&squares) / (2.0 * (1.0 - load));
    let outcome = simulate(&list, 1, by_name("fcfs").unwrap().as_mut()).unwrap();
    let wait_s = |served: &pleach_rooms::layers::Served| {
        (served.finish_us - served.arrival_us - served.isolated_us) as f64 / 1e6
    };
    let waits: Vec<f64> = outcome.requests.iter().map(wait_s).collect();
    let ours = mean(&waits);
    assert!((0.6..0.7).contains(&load), "{load}");
    assert!(
        (ours / expected - 1.0).abs() < 0.03,
        "{ours} s, {expected} s expected"
    );
    assert_eq!(outcome.num_preemptions, 0);
}

/// M/G/1 under processor sharing: the mean turnaround of a request of size S is S / (1 - rho), whatever the sizes' law.
#[test]
fn round_robin_of_short_layers_is_processor_sharing() {
    let model = |name: &str, layers: usize| Model::new(name, vec![vec![100.0; layers]]).unwrap();
    let profiles = Profiles {
        models: vec![model("short", 20), model("long", 180)],
        spread: 0.2,
        correlation: 0.9,
    };
    let generator = RequestGenerator {
        num_requests: 100_000,
        rate_per_s: 60.0,
        multiplier: 10.0,
        hot: None,
    };
    let list = generator.draw(&profiles, Seed(3)).unwrap();
    let outcome = simulate(&list, 1, &mut RoundRobin).unwrap();
    let antt = outcome.antt();
    assert!(
        (antt / 2.5 - 1.0).abs() < 0.03,
        "{antt}, 2.5 expected at a load of 0.6"
    );
}

/// Requests A (three layers of 10 us) and B (two) at 0, C (one) at 15. Round robin: A 0-10, B 10-20, C waits since 15 and A
/// since 10: A 20-30, C 30-40, B 40-50, A 50-60.
#[test]
fn turns_are_as_worked_by_hand() {
    let list = toy(
        &[&[10.0; 3], &[10.0; 2], &[10.0]],
        &[(0, 0, &[10; 3]), (0, 1, &[10; 2]), (15, 2, &[10])],
    );
    let ends = |scheduler: &mut dyn Scheduler, num| -> Vec<u64> {
        let outcome = simulate(&list, num, scheduler).unwrap();
        outcome.requests.iter().map(|served| served.finish_us).collect()
    };
    assert_eq!(ends(&mut RoundRobin, 1), [60, 50, 40]);
    // Shortest rest: B 0-20 (its rest of 10 at 10 is less than A's 30), C 20-30, A 30-60.
    assert_eq!(ends(by_name("sjf").unwrap().as_mut(), 1), [60, 20, 30]);
    assert_eq!(ends(by_name("fcfs").unwrap().as_mut(), 1), [30, 50, 60]);
    // On two: A 0-30 and B 0-20, C 20-30.
    assert_eq!(ends(by_name("fcfs").unwrap().as_mut(), 2), [30, 20, 30]);
}

/// The least mean turnaround of requests that come together, over all orders.
fn least_sum_us(sizes: &mut Vec<u64>, done_us: u64) -> u64 {
    let mut best = u64::MAX;
    if sizes.is_empty() {
        return 0;
    }
    for place in 0..sizes.len() {
        let size = sizes.remove(place);
        best = best.min(done_us + size + least_sum_us(sizes, done_us + size));
        sizes.insert(place, size);
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Where beliefs are true `sjf` is the best order; `oracle` is where they are not.
    #[test]
    fn the_shortest_first_is_the_best_order_of_those_that_come_together(
        truths in prop::collection::vec(prop::collection::vec(1_u32..40, 3), 2..7),
    ) {
        let as_means: Vec<Vec<f64>> = truths.iter().map(|layers| layers.iter().map(|us| f64::from(*us)).collect()).collect();
        let believed: Vec<&[f64]> = as_means.iter().map(Vec::as_slice).collect();
        let rows: Vec<(u64, usize, &[u32])> = truths.iter().enumerate().map(|(model, us)| (0, model, us.as_slice())).collect();
        let known = toy(&believed, &rows);
        let unknown = toy(&vec![[20.0_f64; 3].as_slice(); truths.len()], &rows);
        let mut sizes: Vec<u64> = truths.iter().map(|us| us.iter().map(|us| u64::from(*us)).sum()).collect();
        let best = least_sum_us(&mut sizes, 0);
        for (list, policy) in [(&known, "sjf"), (&known, "dysta:beta=0"), (&unknown, "oracle:beta=0")] {
            let outcome = simulate(list, 1, by_name(policy).unwrap().as_mut()).unwrap();
            let sum: u64 = outcome.requests.iter().map(|served| served.finish_us).sum();
            prop_assert_eq!(sum, best, "{}", policy);
        }
        let believes_wrongly = simulate(&unknown, 1, by_name("sjf").unwrap().as_mut()).unwrap();
        prop_assert!(believes_wrongly.requests.iter().map(|served| served.finish_us).sum::<u64>() >= best);
    }
}

/// Chooses what is not there.
struct Astray;

impl Scheduler for Astray {
    fn choose(&mut self, queue: &mut Queue<'_>) -> Result<usize, Problem> {
        Ok(queue.waiting.len())
    }
}

#[test]
fn who_chooses_nobody_is_refused_and_so_are_no_accelerators() {
    let list = toy(&[&[10.0]], &[(0, 0, &[10])]);
    let error = simulate(&list, 1, &mut Astray).unwrap_err().to_string();
    assert!(error.contains("a place below 1"), "{error}");
    let error = simulate(&list, 0, &mut RoundRobin).unwrap_err().to_string();
    assert!(error.contains("num_accelerators"), "{error}");
}

/// One leaf: all is decided by the least of a weighted sum of columns.
fn by_sum(schema: &'static FeatureSchema, column: &str) -> Tree {
    let place = schema
        .features
        .iter()
        .position(|feature| feature.name == column)
        .unwrap();
    let meta = TreeMeta {
        name: column.into(),
        tie_key: TieKey::Index,
        key_weights: vec![KeyWeight {
            feature: place as u16,
            weight: 1.0,
        }],
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: std::collections::BTreeMap::new(),
    };
    let leaf = Node::Leaf {
        id: 0,
        score: 0.0,
        samples: 1,
        weight: 1.0,
    };
    Tree::over(schema, meta, &[leaf]).unwrap()
}

/// The least believed rest is DySta's rule without slack and idle time. Columns have 32 bits, so that equal rests may be taken in
/// another order.
#[test]
fn a_tree_over_the_rest_is_dysta_without_beta() {
    let list = drawn("attention-1", 500, 32.0, 5);
    let mut tree = ScorerLayers::of_tree(&by_sum(&SCHEMA, "rest")).unwrap();
    let ours = simulate(&list, 1, &mut tree).unwrap();
    let rule = simulate(&list, 1, by_name("dysta:beta=0").unwrap().as_mut()).unwrap();
    assert!(
        (ours.antt() / rule.antt() - 1.0).abs() < 0.01,
        "{} {}",
        ours.antt(),
        rule.antt()
    );
    let mut tree = ScorerLayers::of_tree(&by_sum(&SCHEMA, "slack_share")).unwrap();
    let late = simulate(&list, 1, &mut tree).unwrap();
    assert!(
        late.antt() > 1.2 * rule.antt(),
        "by slack {} by rest {}",
        late.antt(),
        rule.antt()
    );
    let other = by_sum(&pleach_serving::llm::SCHEMA, "ttft_share");
    let error = ScorerLayers::of_tree(&other).err().unwrap().to_string();
    assert!(error.contains("routing") && error.contains("layers"), "{error}");
}
