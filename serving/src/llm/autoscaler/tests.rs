//! Rules worked by hand, what a replica serves, and columns as they are written.

use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{FlatTree, Node, Tree, TreeMeta};

use super::columns::ROW_WIDTH;
use super::*;
use crate::llm::outcome::Targets;
use crate::llm::service::Load;
use crate::llm::step_time::Pace;

/// At a time so many have come, so many replicas are up, out of 16.
fn demand(now_s: f64, arrived: u64, up: usize) -> Demand<'static> {
    Demand {
        now_s,
        load: Load {
            arrived,
            open: up,
            ..Load::default()
        },
        most: 16,
        replica_gpus: 1,
        node_replicas: 8,
        usual_per_s: &[],
        beside: Beside::default(),
        to_come: &[],
    }
}

/// 10 requests a second, of which a replica serves 2 at a target of 1: five; the average is 20 after one period of 30 a second:
/// ten. Then no request comes: 10, 5 a second are five and three, but only after 30 s one goes at a time.
#[test]
fn reactive_goes_up_at_once_and_down_by_one_after_a_while() {
    let mut rule = autoscaler("reactive:target=1:period=10:down=20", 2.0).unwrap();
    assert_eq!(rule.period_s(), Some(10.0));
    assert_eq!(rule.want(&demand(0.0, 0, 0)).unwrap(), 6);
    let asked = [
        (10.0, 100, 6),
        (20.0, 400, 5),
        (30.0, 400, 10),
        (40.0, 400, 10),
        (50.0, 400, 10),
        (60.0, 400, 9),
    ];
    let wanted = asked.map(|(now_s, arrived, up)| rule.want(&demand(now_s, arrived, up)).unwrap());
    // 10 a second: five would do, from 10 s on. 20 a second: ten. Then 10, 5, 2.5 and 1.25.
    assert_eq!(wanted, [6, 10, 10, 10, 9, 8]);
    let mut whole = autoscaler("lyra:target=1:period=10:down=0", 2.0).unwrap();
    assert_eq!(whole.want(&demand(10.0, 200, 8)).unwrap(), 16);
}

#[test]
fn a_replica_serves_what_its_own_capacity_says_and_not_a_quarter_more() {
    let fleet = Fleet {
        pace: Pace::of("llama-3-8b", "H100").unwrap(),
        num_replicas: 16,
        num_gateways: 1,
        scrape_s: 1.0,
        targets: Targets {
            ttft_s: 1.0,
            tpot_s: 0.05,
        },
        may_refuse: false,
    };
    let capacity = capacity_per_s(&fleet, &RequestGenerator::default()).unwrap();
    let hits = |rate_per_s: f64| {
        let list = RequestGenerator {
            num_requests: 4_000,
            rate_per_s,
            burst: 0.0,
            ..RequestGenerator::default()
        };
        let alone = Fleet {
            num_replicas: 1,
            ..fleet.clone()
        };
        let list = list.draw(Seed(7)).unwrap();
        let outcome = simulate(&list, &alone, by_name("random", 0).unwrap().as_mut()).unwrap();
        outcome.hit_share(fleet.targets)
    };
    assert!((2.0..40.0).contains(&capacity), "{capacity}");
    assert!(
        hits(0.9 * capacity) > 0.97 && hits(1.25 * capacity) < 0.97,
        "{capacity}"
    );
}

#[test]
fn names_and_settings_that_are_not_there_are_refused() {
    for (text, part) in [
        ("keda", "reactive"),
        ("static:target=1", "replicas"),
        ("oracle:ahead=-1", "ahead"),
    ] {
        let Err(error) = autoscaler(text, 1.0) else {
            panic!("{text} is taken");
        };
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// 10 a second come where 8 are usual now and 4 some time on: of the ratio 1.25 all, none or its root is left.
#[test]
fn a_seasonal_rate_comes_back_to_what_is_usual() {
    // Two parts of a day whose middles are 6 and 18 o'clock.
    let usual_per_s = [8.0, 4.0];
    let wanted = |keep: f64| {
        let text = format!("seasonal:target=1:period=10:weight=1:ahead=43200:keep={keep}");
        let mut rule = autoscaler(&text, 0.5).unwrap();
        let now = Demand {
            usual_per_s: &usual_per_s,
            ..demand(21_600.0, 100, 1)
        };
        rule.want(&now).unwrap()
    };
    // 5, 4 and 4.47 a second, of which a replica serves half a one.
    assert_eq!([wanted(1.0), wanted(0.0), wanted(0.5)], [10, 8, 9]);
    let mut knows_nothing = autoscaler("seasonal:target=1:period=10:weight=1", 0.5).unwrap();
    assert_eq!(knows_nothing.want(&demand(10.0, 50, 1)).unwrap(), 10);
}

/// Nine replicas' worth: one root more is twelve, and four at a time twelve as well.
#[test]
fn a_reserve_of_roots_and_units() {
    let wanted = |settings: &str| {
        let mut rule = autoscaler(&format!("reactive:target=1:period=10:weight=1{settings}"), 1.0).unwrap();
        rule.want(&demand(10.0, 90, 12)).unwrap()
    };
    assert_eq!(
        [wanted(":spare=1"), wanted(":unit=4"), wanted(":spare=1:down=0")],
        [12; 3]
    );
    assert_eq!([wanted(":down=0"), wanted(":unit=4:target=2:down=0")], [11, 8]);
}

fn tree(nodes: &[Node]) -> Tree {
    let meta = TreeMeta {
        name: "by hand".into(),
        tie_key: TieKey::Index,
        key_weights: Vec::new(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: std::collections::BTreeMap::new(),
    };
    Tree::over(&AUTOSCALING, meta, nodes).unwrap()
}

/// The raw value of a column of a row.
fn told(rows: &[f32], replicas: usize, name: &str) -> f64 {
    let column = AUTOSCALING.joined_index(name).unwrap();
    let row = &rows[replicas * ROW_WIDTH..];
    let raw = AUTOSCALING.features[column]
        .scale
        .invert(row[AUTOSCALING.place(column)]);
    (1e3 * raw).round() / 1e3
}

/// Four replicas' worth on five replicas, one of them loading; three GPUs are idle, a gang of four waits, one of four and a single
/// job would yield.
#[test]
fn a_row_tells_what_a_change_does_to_both() {
    let yields = [
        Yield {
            gpus: 1,
            loss_gpu_s: 60.0,
        },
        Yield {
            gpus: 4,
            loss_gpu_s: 240.0,
        },
    ];
    let now = Demand {
        load: Load {
            arrived: 120,
            running: 20,
            open: 4,
            loading: 1,
            ..Load::default()
        },
        beside: Beside {
            training_gpus: 5,
            idle_gpus: 3,
            waiting_gpus: 4,
            yields: &yields,
        },
        ..demand(15.0, 0, 0)
    };
    let mut changes = Changes::new(2.0);
    assert!(changes.ask(&Demand { now_s: 0.0, ..now }).is_none());
    let (rows, context) = changes.ask(&now).unwrap();
    assert_eq!(
        (rows.len() / ROW_WIDTH, context.len()),
        (9, AUTOSCALING_1.num_context)
    );
    let of = |name: &str| -> Vec<f64> { (0..9).map(|row| told(rows, row, name)).collect() };
    assert_eq!(of("replicas"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert_eq!(of("load_share")[..5], [4.0, 2.0, 1.333, 1.0, 0.8]);
    assert_eq!(of("spare_roots")[3..6], [0.0, 0.5, 1.0]);
    assert_eq!(of("running_each")[4..5], [4.0]);
    // One that leaves makes four idle, on which the gang starts.
    assert_eq!(of("gained_gpus"), [4.0, 4.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    // Three come on what is idle, the fourth stops the single job.
    assert_eq!(of("stopped_gpus")[5..], [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(of("stopped_gpu_s")[5..], [0.0, 0.0, 0.0, 60.0]);
    assert_eq!(of("idle_gpus"), [3.0, 2.0, 1.0, 0.0, 3.0, 2.0, 1.0, 0.0, 0.0]);

    // Replicas of four GPUs: each that leaves is a gang's, and the first that comes takes what is idle and a single job's.
    let mut changes = Changes::new(2.0);
    let (rows, _) = changes
        .ask(&Demand {
            replica_gpus: 4,
            ..now
        })
        .unwrap();
    let of = |name: &str| -> Vec<f64> { (0..9).map(|row| told(rows, row, name)).collect() };
    assert_eq!(of("gained_gpus"), [16.0, 12.0, 8.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(of("stopped_gpus")[5..], [1.0, 5.0, 5.0, 5.0]);
    assert_eq!(of("idle_gpus"), [3.0, 3.0, 3.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
}

/// Enough at 0.7 of what replicas serve, else the last row: the first of equal scores.
#[test]
fn a_tree_takes_the_fewest_replicas_that_it_calls_enough() {
    let column = AUTOSCALING.joined_index("load_share").unwrap() as u16;
    let leaf = |id: u32, score: f32| Node::Leaf {
        id,
        score,
        samples: 0,
        weight: 0.0,
    };
    let split = Node::Split {
        feature: column,
        threshold: 0.7,
        left: 1,
        right: 2,
    };
    let tree = tree(&[split, leaf(0, 1.0), leaf(1, 0.0)]);
    let mut scaler = ScorerAutoscaler::keyed(Box::new(FlatTree::of(&tree)), &tree, 2.0).unwrap();
    assert_eq!(scaler.want(&demand(0.0, 0, 0)).unwrap(), 6);
    // 8 a second are four replicas' worth, at 0.7 six.
    assert_eq!(scaler.want(&demand(15.0, 120, 6)).unwrap(), 6);
    assert_eq!(scaler.want(&demand(30.0, 240, 8)).unwrap(), 6);
}
