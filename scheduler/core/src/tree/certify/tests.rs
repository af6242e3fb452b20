use super::super::tests::{any_tree, keyed_tree, leaf, meta, small_tree, split, weight};
use super::*;
use crate::features::decision::{FEATURES, Id as C};
use proptest::prelude::*;

fn verdict_of(tree: &Tree, property: Property) -> &'static str {
    match tree.verdict(property) {
        Verdict::Proved => "proved",
        Verdict::Refuted(_) => "refuted",
        Verdict::Open(_) => "open",
    }
}

fn tree(nodes: &[Node]) -> Tree {
    Tree::new(meta(), nodes).unwrap()
}

/// Long waits first: monotone in waiting; and the same the other way round.
fn by_wait(first: f32, then: f32) -> Tree {
    tree(&[
        split("is_hold", 0.5, 1, 2),
        split("wait_s", 50_000.0, 3, 4),
        leaf(0, -1.0),
        leaf(1, first),
        leaf(2, then),
    ])
}

#[test]
fn trees_that_one_sees_through_have_the_verdicts_that_one_sees() {
    let up = by_wait(0.0, 1.0);
    assert_eq!(verdict_of(&up, Property::MonotoneInWaiting), "proved");
    assert_eq!(verdict_of(&up, Property::MonotoneInEstimate), "proved");
    assert_eq!(verdict_of(&up, OUTRANKS), "proved");
    assert_eq!(verdict_of(&up, Property::StartsBeforeHolding), "proved");
    let down = by_wait(1.0, 0.0);
    assert_eq!(verdict_of(&down, Property::MonotoneInWaiting), "refuted");
    assert_eq!(verdict_of(&down, OUTRANKS), "refuted");
    let lazy = by_wait(0.0, -2.0);
    assert_eq!(verdict_of(&lazy, Property::StartsBeforeHolding), "refuted");
    // Small jobs first: the shorter the estimate the better, and waiting does not matter.
    assert_eq!(verdict_of(&small_tree(), Property::MonotoneInEstimate), "proved");
    assert_eq!(verdict_of(&small_tree(), Property::MonotoneInWaiting), "proved");
    assert_eq!(verdict_of(&small_tree(), OUTRANKS), "refuted");
    let Verdict::Refuted(witness) = down.verdict(Property::MonotoneInWaiting) else {
        panic!("seen above");
    };
    assert!(witness.first["wait_s"] < witness.second["wait_s"]);
    assert_eq!(witness.leaves, (1, 2));
}

/// Where the oldest job waited for an hour at most, no job waited for a day, so only the other side counts.
#[test]
fn nobody_waits_longer_than_the_oldest() {
    let by_oldest = tree(&[
        split("oldest_wait_s", 3_600.0, 1, 2),
        leaf(0, 0.0),
        split("wait_s", 40_000.0, 3, 4),
        leaf(1, 0.0),
        leaf(2, 1.0),
    ]);
    assert_eq!(verdict_of(&by_oldest, OUTRANKS), "proved");
}

/// A tree that may not stop jobs is judged by what it may do, and its hash says what it chooses among.
#[test]
fn what_is_not_offered_refutes_nothing() {
    let nodes = [
        split("is_preempt", 0.5, 1, 2),
        leaf(0, 0.0),
        split("wait_s", 50_000.0, 3, 4),
        leaf(1, 1.0),
        leaf(2, 0.0),
    ];
    let of = |preempt: bool| {
        let mut meta = meta();
        meta.needs.actions = meta
            .needs
            .actions
            .set(crate::actions::ActionKind::Preempt, preempt);
        Tree::new(meta, &nodes).unwrap()
    };
    assert_eq!(verdict_of(&of(true), Property::MonotoneInWaiting), "refuted");
    assert_eq!(verdict_of(&of(false), Property::MonotoneInWaiting), "proved");
    let unreached = |tree: &Tree| {
        let all = tree.certify().into_iter();
        all.filter(|own| matches!(own.property, Property::LeafIsReached { .. }))
            .count()
    };
    assert_eq!((unreached(&of(true)), unreached(&of(false))), (0, 2));
    assert_ne!(of(true).hash(), of(false).hash());
}

/// What is known between features proves what boxes alone could not: a response ratio of 3 or less with a rest of an hour or less is
/// a wait of two hours or less.
#[test]
fn what_belongs_together_is_known() {
    let dependent = tree(&[
        split("remaining_s", 3_600.0, 1, 2),
        split("wait_ratio", 3.0, 3, 4),
        leaf(0, 0.5),
        split("wait_s", 10_000.0, 5, 6),
        leaf(1, 1.0),
        leaf(2, 0.75),
        leaf(3, 0.0),
    ]);
    let found = dependent.certify();
    assert!(
        found
            .iter()
            .any(|own| own.property == Property::LeafIsReached { leaf: 3 }),
        "{found:?}"
    );
    assert_eq!(verdict_of(&dependent, Property::MonotoneInWaiting), "proved");
    // GPU time without size.
    let product = tree(&[
        split("num_gpus", 4.0, 1, 2),
        split("remaining_s", 100.0, 3, 4),
        leaf(0, 0.0),
        split("gpu_time_gpu_s", 500.0, 5, 6),
        leaf(1, 0.0),
        leaf(2, 1.0),
        leaf(3, 9.0),
    ]);
    let max = |tree: &Tree| {
        tree.certify().iter().find_map(|own| match own.property {
            Property::ScoresWithin { max, .. } => Some(max),
            _ => None,
        })
    };
    assert_eq!(max(&product), Some(1.0));
}

#[test]
fn a_key_that_puts_those_who_waited_last_breaks_the_order_of_waiting() {
    let keyed = |name: &str, value: f32| {
        let mut meta = meta();
        meta.key_weights = vec![weight(name, value)];
        Tree::new(meta, small_tree().nodes()).unwrap()
    };
    assert_eq!(
        verdict_of(&keyed("wait_s", -1.0), Property::MonotoneInWaiting),
        "proved"
    );
    assert_eq!(
        verdict_of(&keyed("wait_ratio", 1.0), Property::MonotoneInWaiting),
        "refuted"
    );
    assert_eq!(verdict_of(&keyed_tree(), Property::MonotoneInWaiting), "proved");
}

/// A row of a candidate of a kind as the program would fill it: what belongs together does.
fn row_of(kind: usize, draws: &[f32]) -> Vec<f32> {
    let ranges: Vec<(f32, f32)> = FEATURES.iter().map(|feature| feature.range_among(kind)).collect();
    let mut row: Vec<f32> = ranges
        .iter()
        .zip(draws)
        .map(|((low, high), draw)| low + (high - low) * draw)
        .collect();
    for (index, value) in row.iter_mut().enumerate() {
        if FEATURES[index].is_flag() {
            *value = value.round();
        }
    }
    link(&mut row);
    row
}

fn raw(row: &[f32], column: C) -> f32 {
    FEATURES[column as usize].scale.invert(row[column as usize]) as f32
}

fn link(row: &mut [f32]) {
    let (rest, wait, gpus) = (
        raw(row, C::RemainingS).max(0.01),
        raw(row, C::WaitS),
        raw(row, C::NumGpus),
    );
    let mut put = |column: C, value: f32| row[column as usize] = FEATURES[column as usize].encode(value);
    put(C::RemainingS, rest);
    put(C::GpuTime, rest * gpus);
    put(C::WaitRatio, (wait + rest) / rest);
    // No job waits longer than the oldest.
    let oldest = C::OldestWaitS as usize;
    row[oldest] = row[oldest].max(FEATURES[oldest].encode(wait));
}

fn score(tree: &Tree, row: &[f32]) -> f32 {
    tree.score_at(tree.walk(row))
}

/// Holds every verdict to pairs of rows as the program would fill them, and every witness to the tree.
fn contradicts_nothing(tree: &Tree, draws: &[Vec<f32>]) {
    let verdicts = tree.certify();
    let is_proved = |property: &Property| {
        verdicts
            .iter()
            .any(|own| own.property == *property && own.verdict == Verdict::Proved)
    };
    for certificate in &verdicts {
        let Verdict::Refuted(witness) = &certificate.verdict else {
            continue;
        };
        if matches!(certificate.property, Property::LeafIsReached { .. }) {
            continue;
        }
        let end = |values: &BTreeMap<String, f32>| {
            let mut row = vec![0.0; FEATURES.len()];
            for (name, value) in values {
                row[crate::features::FeatureSchema::current()
                    .joined_index(name)
                    .unwrap()] = *value;
            }
            tree.walk(&row)
        };
        let ends = (end(&witness.first), end(&witness.second));
        assert_eq!((tree.id_at(ends.0), tree.id_at(ends.1)), witness.leaves);
        let (first, second) = (tree.score_at(ends.0), tree.score_at(ends.1));
        match certificate.property {
            Property::WaitingOutranks { .. } => assert!(second >= first),
            _ if tree.meta().key_weights.is_empty() => assert!(second < first),
            _ => assert!(second <= first),
        }
    }
    for pair in draws.windows(2) {
        for kind in tree.kinds_about_waiting_jobs() {
            let (now, other) = (row_of(kind, &pair[0]), row_of(kind, &pair[1]));
            // The same job later.
            let mut later = now.clone();
            for index in [C::WaitS as usize, C::OldestWaitS as usize] {
                later[index] = now[index].max(other[index]);
            }
            link(&mut later);
            if is_proved(&Property::MonotoneInWaiting) {
                assert!(score(tree, &later) >= score(tree, &now));
            }
            // The same job with a shorter estimate.
            let mut shorter = now.clone();
            for index in [
                C::RemainingS as usize,
                C::DurationS as usize,
                C::RankRemaining as usize,
                C::RankGpuTime as usize,
                C::SmallestGpuTime as usize,
                C::BelievedDrainS as usize,
            ] {
                shorter[index] = now[index].min(other[index]);
            }
            link(&mut shorter);
            if is_proved(&Property::MonotoneInEstimate) {
                assert!(score(tree, &shorter) >= score(tree, &now));
            }
            for certificate in &verdicts {
                match certificate.property {
                    Property::ScoresWithin { min, max } => {
                        assert!((min..=max).contains(&score(tree, &now)));
                    }
                    Property::LeafIsReached { leaf } => assert_ne!(tree.id_at(tree.walk(&now)), leaf),
                    _ => {}
                }
            }
        }
        let mut long = row_of(CandidateKind::Start as usize, &pair[0]);
        let mut short = row_of(CandidateKind::Start as usize, &pair[1]);
        let mut hold = row_of(CandidateKind::Hold as usize, &pair[1]);
        hold[C::WaitRatio as usize] = 0.0;
        hold[C::RemainingS as usize] = 0.0;
        for row in [&mut short, &mut hold] {
            for (index, feature) in FEATURES.iter().enumerate() {
                if feature.group == Group::Context {
                    row[index] = long[index];
                }
            }
        }
        if is_proved(&Property::StartsBeforeHolding) {
            assert!(score(tree, &long) >= score(tree, &hold));
        }
        let wait = &FEATURES[C::WaitS as usize];
        long[C::WaitS as usize] = long[C::WaitS as usize].max(wait.encode(86_400.0));
        short[C::WaitS as usize] = short[C::WaitS as usize].min(wait.encode(3_600.0));
        link(&mut long);
        link(&mut short);
        // One cluster, whose oldest is at least as old as both.
        let oldest = C::OldestWaitS as usize;
        (long[oldest], short[oldest]) = (long[oldest].max(short[oldest]), long[oldest].max(short[oldest]));
        if is_proved(&OUTRANKS) {
            assert!(score(tree, &long) > score(tree, &short));
        }
    }
}

#[test]
fn sensible_trees_contradict_no_verdict_in_many_decisions() {
    let mut state = 7_u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0
    };
    let draws: Vec<Vec<f32>> = (0..20_000)
        .map(|_| (0..FEATURES.len()).map(|_| draw()).collect())
        .collect();
    for tree in [small_tree(), keyed_tree(), by_wait(0.0, 1.0), by_wait(1.0, 0.0)] {
        contradicts_nothing(&tree, &draws);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_decision_contradicts_a_verdict_and_every_witness_reproduces(
        tree in any_tree(),
        draws in prop::collection::vec(prop::collection::vec(0.0..1.0_f32, FEATURES.len()), 2..40),
    ) {
        contradicts_nothing(&tree, &draws);
    }
}
