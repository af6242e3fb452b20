//! A schema of leases, which no pass has, through trees: files, certificates against brute force, and exports that run.

use std::process::Command;

use proptest::prelude::*;

use super::tests::{leaf, meta};
use super::{Export, FlatTree, Node, Property, Tree, Verdict};
use crate::features::{
    Among, Control, Feature, FeatureSchema, Group, Kinds, Law, Relation, RowKind, Scale, Stimulus, View,
};
use crate::key_weight::KeyWeight;
use crate::rows::Rows;

const IDLE: usize = 0;
const RENEW: usize = 1;
const GRANT: usize = 2;

const fn kind(name: &'static str, does: &'static str, is_about_a_job: bool) -> RowKind {
    RowKind {
        name,
        does,
        action: None,
        is_about_a_job,
        waits: is_about_a_job,
    }
}

const KINDS: [RowKind; 3] = [
    kind("idle", "give no lease until the next event", false),
    kind("renew", "give a lease again to whoever has it", true),
    kind("grant", "give a lease to whoever has none", true),
];

const fn column(name: &'static str, max: f32, group: Group, among: Among, moves: [Relation; 3]) -> Feature {
    Feature {
        name,
        unit: "",
        min: 0.0,
        max,
        scale: Scale::Linear(max),
        doc: "A number of a lease.",
        group,
        among,
        moves,
        control: Control::Fixed,
        is_whole: true,
    }
}

const STILL: [Relation; 3] = [Relation::Equal, Relation::Equal, Relation::Equal];
const OWN: Among = Among::Varies(Kinds::of(&[RENEW, GRANT]));

/// A column of a row stands behind the first one of the context, as later columns do.
const FEATURES: [Feature; 7] = [
    column("is_renew", 1.0, Group::Row, Among::Flag(RENEW), STILL),
    column("size", 4.0, Group::Row, OWN, STILL),
    column(
        "waited",
        4.0,
        Group::Row,
        OWN,
        [Relation::Up, Relation::Equal, Relation::Equal],
    ),
    column(
        "load",
        4.0,
        Group::Context,
        Among::Varies(Kinds::of(&[IDLE, RENEW, GRANT])),
        STILL,
    ),
    column(
        "left",
        4.0,
        Group::Row,
        OWN,
        [Relation::Equal, Relation::Down, Relation::Equal],
    ),
    column(
        "work",
        16.0,
        Group::Row,
        OWN,
        [Relation::Equal, Relation::Down, Relation::Equal],
    ),
    column("held", 4.0, Group::Row, Among::Varies(Kinds::of(&[RENEW])), STILL),
];
const LAWS: [Law; 1] = [Law::Product {
    out: 5,
    factors: [4, 1],
}];
const VIEWS: [View; 2] = [
    View::of("lease-1", &FEATURES, 4),
    View::of("lease-2", &FEATURES, 7),
];
static LEASE: FeatureSchema = FeatureSchema::new("lease", &KINDS, &FEATURES, &LAWS, &VIEWS);

fn split(name: &str, raw: f32, left: u32, right: u32) -> Node {
    let feature = LEASE.joined_index(name).unwrap();
    Node::Split {
        feature: feature as u16,
        threshold: FEATURES[feature].encode(raw),
        left,
        right,
    }
}

/// Renewals first where little is left, then leases that waited.
fn by_left() -> Tree {
    let nodes = [
        split("is_renew", 0.5, 1, 2),
        split("waited", 1.5, 3, 4),
        split("left", 2.5, 5, 6),
        leaf(0, 0.0),
        leaf(1, 1.0),
        leaf(2, 3.0),
        leaf(3, 2.0),
    ];
    let mut meta = meta();
    meta.key_weights = vec![KeyWeight {
        feature: 6,
        weight: -0.5,
    }];
    Tree::over(&LEASE, meta, &nodes).unwrap()
}

#[test]
fn a_file_lists_the_columns_that_are_read_and_is_refused_for_those_alone() {
    let tree = by_left();
    assert_eq!(
        (tree.width(), tree.features()),
        (7, vec!["is_renew", "waited", "left", "held"])
    );
    let text = tree.to_json();
    assert!(
        text.contains("\"version\": 3") && text.contains("\"rows\": \"lease\""),
        "{text}"
    );
    assert!(!text.contains("work") && !text.contains("schema"), "{text}");
    let read = Tree::from_json_over(&LEASE, &text).unwrap();
    assert_eq!((&read, read.to_json()), (&tree, text.clone()));
    let refusal = |text: &str| Tree::from_json_over(&LEASE, text).unwrap_err().to_string();
    let other = refusal(&text.replace("candidate waited [] 0 4", "candidate waited [] 0 5"));
    assert!(
        other.contains("only in the file:    candidate waited [] 0 5"),
        "{other}"
    );
    assert!(
        other.contains("only in the program: candidate waited [] 0 4"),
        "{other}"
    );
    let unknown = refusal(&text.replace("waited", "waitet"));
    assert!(
        unknown.contains("the nearest name in the program is waited"),
        "{unknown}"
    );
    let elsewhere = Tree::from_json(&text).unwrap_err().to_string();
    assert!(
        elsewhere.contains("rows = lease: allowed is decision"),
        "{elsewhere}"
    );
}

#[test]
fn words_and_kinds_are_those_of_the_schema() {
    let text = by_left().to_text();
    for words in [
        "renew: in tiers 1 and 2. Give a lease again to whoever has it.",
        "grant: in tier 3, never in tier 4 while a job runs.",
        "idle: in tier 4, the last of its tier. Give no lease until the next event.",
    ] {
        assert!(
            text.contains(words) || words.starts_with("grant"),
            "{words} in\n{text}"
        );
    }
    let names: Vec<&str> = by_left().outline().kinds.iter().map(|kind| kind.name).collect();
    assert_eq!(names, ["renew", "grant", "idle"]);
}

/// All rows of a kind with whole numbers, as the schema's laws have them.
fn all_rows(kind: usize) -> Vec<Vec<f32>> {
    let mut rows = vec![Vec::new()];
    for (index, feature) in FEATURES.iter().enumerate() {
        let (low, high) = feature.range_among(kind);
        let max = feature.max as u8;
        let values = (0..=max).map(|value| feature.encode(f32::from(value)));
        let values: Vec<f32> = values.filter(|value| (low..=high).contains(value)).collect();
        rows = rows
            .iter()
            .flat_map(|row: &Vec<f32>| {
                values.iter().map(|value| {
                    let mut row = row.clone();
                    row.push(*value);
                    row
                })
            })
            .filter(|row| index != 5 || kind == IDLE || row[5] * 16.0 == row[4] * 4.0 * (row[1] * 4.0))
            .collect();
    }
    rows
}

fn score(tree: &Tree, row: &[f32]) -> f32 {
    match tree.nodes()[tree.walk(row)] {
        Node::Leaf { score, .. } => score,
        Node::Split { .. } => f32::NAN,
    }
}

/// Whether some pair of rows shows that a property does not hold.
fn is_broken(tree: &Tree, stimulus: Stimulus) -> bool {
    [RENEW, GRANT].into_iter().any(|kind| {
        let rows = all_rows(kind);
        rows.iter().any(|first| {
            rows.iter().any(|second| {
                let mut values = FEATURES.iter().zip(first.iter().zip(second));
                let stand = values.all(|(feature, (first, second))| match feature.relation(stimulus) {
                    Relation::Equal => first == second,
                    Relation::Up => first <= second,
                    Relation::Down => first >= second,
                    Relation::Any => true,
                });
                stand && score(tree, second) < score(tree, first)
            })
        })
    })
}

fn any_lease_tree() -> impl Strategy<Value = Tree> {
    let step = (any::<u16>(), 0..FEATURES.len() as u16, 0..4_u8, 0..4_u8);
    prop::collection::vec(step, 0..6).prop_map(|steps| {
        let mut nodes = vec![leaf(0, 0.0)];
        for (number, (which, feature, half, score)) in steps.into_iter().enumerate() {
            let leaves: Vec<usize> = (0..nodes.len())
                .filter(|index| matches!(nodes[*index], Node::Leaf { .. }))
                .collect();
            let place = leaves[usize::from(which) % leaves.len()];
            let (left, right) = (nodes.len() as u32, nodes.len() as u32 + 1);
            let max = FEATURES[usize::from(feature)].max;
            let raw = (f32::from(half) + 0.5) * max / 4.0;
            let old = nodes[place];
            nodes[place] = Node::Split {
                feature,
                threshold: FEATURES[usize::from(feature)].encode(raw),
                left,
                right,
            };
            nodes.push(old);
            nodes.push(leaf(number as u32 + 1, f32::from(score)));
        }
        Tree::over(&LEASE, meta(), &nodes).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_certificate_contradicts_all_rows_that_there_are(tree in any_lease_tree()) {
        for (property, stimulus) in [
            (Property::MonotoneInWaiting, Stimulus::Waiting),
            (Property::MonotoneInEstimate, Stimulus::Estimate),
        ] {
            match tree.verdict(property) {
                Verdict::Proved => prop_assert!(!is_broken(&tree, stimulus), "{}", tree.to_text()),
                Verdict::Refuted(witness) => prop_assert_ne!(witness.leaves.0, witness.leaves.1),
                Verdict::Open(_) => {}
            }
        }
        prop_assert!(matches!(tree.verdict(Property::StartsBeforeHolding), Verdict::Open(_)));
        let certified = tree.clone().with_certificates(tree.certify());
        let read = Tree::from_json_over(&LEASE, &certified.with_golden().to_json()).unwrap();
        prop_assert_eq!(read.to_json(), Tree::from_json_over(&LEASE, &read.to_json()).unwrap().to_json());
    }
}

#[test]
fn rows_and_context_are_joined_by_number_whatever_the_width() {
    let tree = by_left();
    let flat = FlatTree::of(&tree);
    assert_eq!(flat.widths(), (6, 1));
    for row in all_rows(RENEW).iter().step_by(7) {
        let (context, own) = ([row[3]], [&row[..3], &row[4..]].concat());
        // A later program has more columns.
        let wider = [own.as_slice(), &[9.0]].concat();
        for (own, width) in [(&own, 6), (&wider, 7)] {
            let rows = Rows {
                schema: &LEASE,
                rows: own,
                width,
                context: &context,
                mask: &[true],
            };
            flat.walk(&rows, |_, leaf| {
                assert_eq!(flat.place_of(leaf), tree.walk(row));
            });
        }
    }
}

#[test]
fn an_export_to_python_answers_as_the_tree_does() {
    let tree = by_left();
    let rows = [all_rows(RENEW), all_rows(GRANT)].concat();
    let rows: Vec<&Vec<f32>> = rows.iter().step_by(11).collect();
    let asked: Vec<String> = rows.iter().map(|row| format!("score({row:?})")).collect();
    let program = format!(
        "{}\nprint(*[{}])\n",
        tree.export(Export::Python),
        asked.join(", ")
    );
    let run = Command::new("python3").args(["-c", &program]).output().unwrap();
    let found = String::from_utf8(run.stdout).unwrap();
    let found: Vec<f32> = found
        .split_whitespace()
        .map(|score| score.parse().unwrap())
        .collect();
    let expected: Vec<f32> = rows.iter().map(|row| score(&tree, row)).collect();
    assert_eq!(found, expected);
}
