//! What was learned deals as the formula with the same weights does.

use std::collections::BTreeMap;

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta};
use pleach_scheduler::{Planner, PolicyError, Rows, Scorer, Time};

use crate::test_clusters::{multi_type_cluster, submit};
use crate::{
    Dealer, DealingRules, Formula, FormulaOrder, ScoredOrder, deal_schema, scored_planner, scored_rules,
};

const WEIGHTS: [(&str, f64); 4] = [
    ("service", -1.25),
    ("gang", -0.5),
    ("rest", -0.75),
    ("speed", 3.5),
];

/// A sum of weighted columns in 64 bits, or what a test says instead.
struct Weighted {
    schema: &'static FeatureSchema,
}

impl Scorer for Weighted {
    fn schema(&self) -> &'static FeatureSchema {
        self.schema
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        for (place, score) in scores.iter_mut().enumerate() {
            let value = |name: &str| rows.row(place)[deal_schema().joined_index(name).unwrap()];
            *score = WEIGHTS
                .iter()
                .fold(0.0, |sum, (name, weight)| sum + weight * f64::from(value(name)))
                as f32;
        }
        Ok(())
    }
}

fn leaf(id: u32, score: f32) -> Node {
    Node::Leaf {
        id,
        score,
        samples: 0,
        weight: 0.0,
    }
}

/// A tree over a deal whose key puts the largest sum of these first.
fn tree(weights: &[(&str, f64)], nodes: &[Node]) -> Tree {
    let mut key_weights: Vec<KeyWeight> = weights
        .iter()
        .map(|(name, weight)| KeyWeight {
            feature: deal_schema().joined_index(name).unwrap() as u16,
            weight: -*weight as f32,
        })
        .collect();
    key_weights.sort_by_key(|term| term.feature);
    let meta = TreeMeta {
        name: "test".into(),
        tie_key: TieKey::Index,
        key_weights,
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: BTreeMap::new(),
    };
    Tree::over(deal_schema(), meta, nodes).unwrap()
}

/// Which jobs run where after each of some deals of ten jobs on two types.
fn played(planner: &mut dyn Planner, seed: u32) -> Vec<String> {
    let mut cluster = multi_type_cluster(&[1.0, 2.0], 4);
    let mut told = Vec::new();
    for number in 0..10 {
        let draw = (seed * 7 + number * 5) % 11;
        submit(
            &mut cluster,
            1 + (draw + number) % 4,
            500.0 + 1_000.0 * f64::from(draw) + f64::from(number),
        );
        cluster.advance(Time::from_secs_f64(300.0 * f64::from(number * number)));
        planner.plan(&mut cluster).unwrap();
        cluster.check();
        let jobs = cluster.running().map(|id| (id, &cluster.job(id).placement));
        told.push(format!("{:?}", jobs.collect::<Vec<_>>()));
    }
    told
}

#[test]
fn scores_of_rows_and_keys_of_a_tree_deal_as_the_formula_with_their_weights() {
    let weights = WEIGHTS
        .iter()
        .map(|(name, weight)| ((*name).to_string(), *weight));
    let formula = Formula::of(scored_rules().unwrap(), weights.collect(), "");
    let mut plays = Vec::new();
    for seed in 0..8 {
        let mut by_formula = Dealer::new("formula", formula.rules, FormulaOrder::new(&formula)).unwrap();
        let expected = played(&mut by_formula, seed);
        let scorer = Weighted {
            schema: deal_schema(),
        };
        let orders = [
            ScoredOrder::new(Box::new(scorer)).unwrap(),
            ScoredOrder::tree(&tree(&WEIGHTS, &[leaf(0, 1.0)])).unwrap(),
        ];
        for order in orders {
            assert_eq!(
                played(&mut scored_planner("scored", order).unwrap(), seed),
                expected
            );
        }
        plays.push(expected);
    }
    plays.dedup();
    assert!(plays.len() > 4, "lists differ");
}

#[test]
fn a_tier_is_worth_more_than_any_key() {
    let mut cluster = multi_type_cluster(&[1.0], 1);
    for num_gpus in [1, 1] {
        submit(&mut cluster, num_gpus, 1e5);
    }
    // Least rest is the better tier; of the key alone the first job would win, which is older.
    let rest = deal_schema().joined_index("rest").unwrap();
    submit(&mut cluster, 1, 1e3);
    let nodes = [
        Node::Split {
            feature: rest as u16,
            threshold: 8.0,
            left: 1,
            right: 2,
        },
        leaf(0, 2.0),
        leaf(1, -1.0),
    ];
    let tiers = tree(&[("rest", 1000.0)], &nodes);
    let rules = DealingRules {
        stint: 0.0,
        ..scored_rules().unwrap()
    };
    let mut dealer = Dealer::new("tiers", rules, ScoredOrder::tree(&tiers).unwrap()).unwrap();
    dealer.plan(&mut cluster).unwrap();
    assert_eq!(crate::test_clusters::running(&cluster), [2]);
}

#[test]
fn what_scores_other_rows_is_refused() {
    let other = Weighted {
        schema: FeatureSchema::current(),
    };
    let refused = ScoredOrder::new(Box::new(other)).unwrap_err().to_string();
    assert!(
        refused.contains("deal") && refused.contains("decision"),
        "{refused}"
    );
}
