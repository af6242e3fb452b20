//! What certificates rest on, and what they say of trees made by hand.

use pleach_scheduler::Problem;
use pleach_scheduler::features::{Group, Law, Relation, Stimulus};
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, TreeMeta};
use pleach_workloads::Seed;

use super::*;
use crate::llm::columns::{ROW_WIDTH, write};
use crate::llm::generate::RequestGenerator;
use crate::llm::{Decision, Facts, Fleet, Pace, Router, Sent, Targets, by_name, simulate};

/// Takes work off one replica at each decision, a part of it drawn, and looks how its columns and those of all have moved.
struct Relieving {
    rule: Box<dyn Router>,
    numbers: u64,
    num_compared: u64,
    moved: Vec<bool>,
}

impl Relieving {
    /// Quarters that are left.
    fn part(&mut self) -> u64 {
        let next = self.numbers.wrapping_mul(6_364_136_223_846_793_005);
        self.numbers = next.wrapping_add(1);
        (self.numbers >> 40) % 5
    }

    fn compare(&mut self, decision: &Decision<'_>) {
        let replica = self.num_compared as usize % decision.facts.len();
        let (mut facts, mut sent): (Vec<Facts>, Vec<Sent>) = (decision.facts.into(), decision.sent.into());
        let (told, own) = (facts[replica], sent[replica]);
        // Requests go with their tokens.
        let [waiting, running, left] = [self.part(), self.part(), self.part()];
        let of = |whole: u64, quarters: u64| whole * quarters / 4;
        facts[replica] = Facts {
            waiting_requests: of(told.waiting_requests, waiting),
            waiting_tokens: of(told.waiting_tokens, waiting),
            running_requests: of(told.running_requests, running),
            context_tokens: of(told.context_tokens, running),
            ..told
        };
        sent[replica] = Sent {
            requests: of(own.requests, left),
            tokens: of(own.tokens, left),
            queue_tokens: left as f64 / 4.0 * own.queue_tokens,
            ..own
        };
        let relieved = Decision {
            facts: &facts,
            sent: &sent,
            ..*decision
        };
        let [before, after] = [decision, &relieved].map(|decision| {
            let (mut rows, mut context) = (Vec::new(), Vec::new());
            write(decision, &mut rows, &mut context);
            (rows[replica * ROW_WIDTH..][..ROW_WIDTH].to_vec(), context)
        });
        for (index, feature) in SCHEMA.features.iter().enumerate() {
            let place = SCHEMA.place(index);
            let [before, after] = [&before, &after].map(|(row, context)| match feature.group {
                Group::Row => row[place],
                Group::Context => context[place],
            });
            let holds = match feature.relation(Stimulus::Relief) {
                Relation::Equal => before == after,
                Relation::Down => after <= before,
                Relation::Up => after >= before,
                Relation::Any => true,
            };
            assert!(
                holds,
                "{}: {before} becomes {after}: {decision:?} {relieved:?}",
                feature.name
            );
            self.moved[index] |= before != after;
        }
        for law in SCHEMA.laws {
            let Law::AtMost { least, most, .. } = *law else {
                panic!("another law");
            };
            let (row, context) = &after;
            assert!(context[SCHEMA.place(least)] <= row[SCHEMA.place(most)], "{law:?}");
        }
        self.num_compared += 1;
    }
}

impl Router for Relieving {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        self.compare(decision);
        self.rule.route(decision)
    }
}

fn fleet() -> Fleet {
    Fleet {
        pace: Pace::of("llama-3-8b", "H100").unwrap(),
        num_replicas: 4,
        num_gateways: 2,
        scrape_s: 1.0,
        targets: Targets::default(),
        may_refuse: true,
    }
}

#[test]
fn columns_of_a_replica_with_less_to_do_move_as_the_schema_says() {
    let mut moved = vec![false; SCHEMA.features.len()];
    for (rate_per_s, seed) in [(30.0, 1), (52.0, 2), (90.0, 3)] {
        let list = RequestGenerator {
            num_requests: 3_000,
            rate_per_s,
            turns: 2.0,
            ..RequestGenerator::default()
        };
        let mut router = Relieving {
            rule: by_name("least-tokens", 1).unwrap(),
            numbers: seed,
            num_compared: 0,
            moved: vec![false; SCHEMA.features.len()],
        };
        simulate(&list.draw(Seed(seed)).unwrap(), &fleet(), &mut router).unwrap();
        assert_eq!(router.num_compared, 3_000);
        moved
            .iter_mut()
            .zip(router.moved)
            .for_each(|(all, one)| *all |= one);
    }
    // What is said to move does.
    for (feature, moved) in SCHEMA.features.iter().zip(moved) {
        let relation = feature.relation(Stimulus::Relief);
        assert_eq!(moved, relation != Relation::Equal, "{}", feature.name);
    }
}

/// `(column, raw threshold, left, right)`, or a leaf's score.
enum Hand {
    Split(&'static str, f32, u32, u32),
    Leaf(f32),
}
use Hand::{Leaf, Split};

fn tree(nodes: &[Hand], key: &[(&str, f32)]) -> Tree {
    let column = |name: &str| {
        SCHEMA
            .features
            .iter()
            .position(|feature| feature.name == name)
            .unwrap()
    };
    let mut num_leaves = 0;
    let nodes = nodes.iter().map(|node| match node {
        Split(name, raw, left, right) => Node::Split {
            feature: column(name) as u16,
            threshold: SCHEMA.features[column(name)].encode(*raw),
            left: *left,
            right: *right,
        },
        Leaf(score) => {
            num_leaves += 1;
            Node::Leaf {
                id: num_leaves - 1,
                score: *score,
                samples: 0,
                weight: 0.0,
            }
        }
    });
    let key_weights = key.iter().map(|(name, weight)| KeyWeight {
        feature: column(name) as u16,
        weight: *weight,
    });
    let meta = TreeMeta {
        name: "by hand".into(),
        tie_key: TieKey::Index,
        key_weights: key_weights.collect(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: std::collections::BTreeMap::new(),
    };
    Tree::over(&SCHEMA, meta, &nodes.collect::<Vec<_>>()).unwrap()
}

/// Refuses what no replica can serve within 0.8 of its TTFT.
fn guarded(key: &[(&str, f32)]) -> Tree {
    let nodes = [
        Split("is_refuse", 0.5, 1, 2),
        Split("ttft_now_share", 0.8, 3, 4),
        Leaf(1.0),
        Leaf(2.0),
        Leaf(0.0),
    ];
    tree(&nodes, key)
}

fn words(tree: &Tree) -> Vec<String> {
    let all = certificates(tree);
    all.iter()
        .map(|(said, verdict)| verdict.in_words(said, &SCHEMA))
        .collect()
}

fn has(words: &[String], start: &str) -> bool {
    words.iter().any(|line| line.starts_with(start))
}

#[test]
fn a_guard_is_proved_with_its_bound() {
    let words = words(&guarded(&[("ttft_now_share", 1.0)]));
    for start in [
        "proved: what has less to do, all else equal, never comes later",
        "proved: nothing is refused while a replica's believed times now are within 0.8 of both targets",
        "proved: every score lies between 0 and 2",
    ] {
        assert!(has(&words, start), "{start}: {words:#?}");
    }
    // The time between tokens is not asked about: a replica may be sent to however late it is there.
    let late = words
        .iter()
        .find(|line| line.contains("beyond 10 of a target"))
        .unwrap();
    assert!(late.starts_with("refuted") && late.contains("leaf"), "{late}");
    assert_eq!(
        words
            .iter()
            .filter(|line| line.contains("all that was sent"))
            .count(),
        0,
        "it is not read"
    );
}

#[test]
fn a_tree_that_prefers_the_busy_is_refuted_with_a_pair() {
    let busy = [Split("running_requests", 10.0, 1, 2), Leaf(0.0), Leaf(1.0)];
    let of_tiers = words(&tree(&busy, &[]));
    assert!(has(&of_tiers, "refuted: what has less to do"), "{of_tiers:#?}");
    let of_key = words(&guarded(&[("ttft_now_share", -1.0)]));
    assert!(has(&of_key, "refuted: what has less to do"), "{of_key:#?}");
}

#[test]
fn a_tree_that_refuses_for_no_reason_is_refuted() {
    let words = words(&tree(
        &[
            Split("is_refuse", 0.5, 1, 2),
            Split("ttft_now_share", 0.05, 3, 4),
            Leaf(1.0),
            Leaf(2.0),
            Leaf(0.0),
        ],
        &[],
    ));
    let refused = words
        .iter()
        .find(|line| line.contains("within 0.1 of both targets"))
        .unwrap();
    assert!(refused.starts_with("refuted"), "{refused}");
}
