//! What policy files claim, held to a second checker: `docs/check_certificates`, in another language and without any code of ours.
//!
//! On trees and formulas at random, and on those that are shipped, it finds every claim to hold; and a claim that is turned, dropped or
//! tightened, rows that show nothing, and visits that cannot have been are each found out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use pleach_env::Seed;
use pleach_scheduler::FeatureSchema;
use pleach_scheduler::formula::ScoreFormula;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta, Visits};
use rand::{Rng, RngExt as _};
use serde_json::{Value, json};

const CHECKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/check_certificates");
const TREES: [&str; 7] = [
    "tests/trees/Elastic-v1-tree.json",
    "tests/trees/GavelMulti-v1-tree.json",
    "tests/trees/GavelShare-v1-tree.json",
    "tests/trees/HeliosTenants-v1-tree.json",
    "tests/trees/PhillyShare-v1-tree.json",
    "checkpoints/reference/Synergy-v1-tree.json",
    "tests/trees/PhillyGang-v1-tree.json",
];
/// Columns that every build has: debug assertions add two of tests behind them.
const NUM_COLUMNS: u16 = 58;
const NUM_RANDOM: usize = 60;

/// What the checker says of files: its lines by file.
fn said(python: &Path, files: &[PathBuf]) -> BTreeMap<PathBuf, Vec<String>> {
    let found = Command::new(python)
        .arg("-B")
        .arg(CHECKER)
        .args(files)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&found.stderr);
    assert!(errors.is_empty(), "{errors}");
    let mut lines: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(found.stdout).unwrap().lines() {
        let (file, words) = line.split_once(": ").unwrap();
        lines.entry(file.into()).or_default().push(words.to_owned());
    }
    let is_wrong = lines.values().flatten().any(|line| line.starts_with("wrong"));
    assert_eq!(found.status.code(), Some(i32::from(is_wrong)));
    assert_eq!(lines.len(), files.len());
    lines
}

/// A tree of a few splits; scores are of a few steps, so that claims of all kinds come out.
fn tree(random: &mut impl Rng) -> Tree {
    let features = FeatureSchema::current().features;
    let leaf = |id: u32, random: &mut dyn Rng| Node::Leaf {
        id,
        score: random.random_range(0..4_i16).into(),
        samples: 1,
        weight: 1.0,
    };
    let mut nodes = vec![leaf(0, random)];
    for number in 0..random.random_range(1..12) {
        let leaves: Vec<usize> = (0..nodes.len())
            .filter(|place| matches!(nodes[*place], Node::Leaf { .. }))
            .collect();
        let place = leaves[random.random_range(0..leaves.len())];
        // Half of the splits are on what the laws and the stimuli are about.
        let named = [
            "wait_s",
            "remaining_s",
            "wait_ratio",
            "oldest_wait_s",
            "gpu_time_gpu_s",
            "is_hold",
        ];
        let feature = match random.random_bool(0.5) {
            true => random.random_range(0..NUM_COLUMNS),
            false => {
                let name = named[random.random_range(0..named.len())];
                FeatureSchema::current().joined_index(name).unwrap() as u16
            }
        };
        let found = &features[usize::from(feature)];
        let (min, max) = (found.encode(found.min), found.encode(found.max));
        let threshold = min + (max - min) * random.random_range(0.0..0.999_f32);
        let (left, right) = (nodes.len() as u32, nodes.len() as u32 + 1);
        let old = nodes[place];
        nodes[place] = Node::Split {
            feature,
            threshold,
            left,
            right,
        };
        nodes.push(old);
        nodes.push(leaf(number + 1, random));
    }
    let key_weights = match random.random_bool(0.3) {
        true => vec![KeyWeight {
            feature: FeatureSchema::current().joined_index("wait_ratio").unwrap() as u16,
            weight: random.random_range(-1.0..1.0),
        }],
        false => Vec::new(),
    };
    let meta = TreeMeta {
        name: "random".into(),
        tie_key: TieKey::Arrival,
        key_weights,
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: BTreeMap::new(),
    };
    Tree::new(meta, &nodes).unwrap()
}

/// An expression without a unit, of so many levels.
fn expression(random: &mut impl Rng, depth: u32) -> String {
    const PLAIN: [&str; 6] = [
        "log1p(duration_s)",
        "log1p(wait_s)",
        // Alone its least value is the largest of shares: where ranges touch, rounding decides.
        "wait_ratio / 3",
        "speed_ratio",
        "oldest_slack",
        "1.5",
    ];
    if depth == 0 || random.random_bool(0.2) {
        return PLAIN[random.random_range(0..PLAIN.len())].to_owned();
    }
    let mut part = || expression(random, depth - 1);
    let (a, b, c, d) = (part(), part(), part(), part());
    match random.random_range(0..10_u32) {
        0 => format!("({a} + {b})"),
        1 => format!("({a} - {b})"),
        2 => format!("{a} * {b}"),
        3 => format!("({a}) / ({b})"),
        4 => format!("min({a}, {b})"),
        5 => format!("max({a}, {b})"),
        6 => format!("abs({a})"),
        7 => format!("-({a})"),
        8 => format!("(if wait_s > 3600 and not is_oldest then {a} else {b})"),
        _ => format!("(if {a} < {b} or is_beside then {c} else {d})"),
    }
}

/// Where the claims of a file stand.
fn claims(file: &mut Value) -> &mut Vec<Value> {
    let place = match file.get("seal") {
        Some(_) => "/seal/certificates",
        None => "/certificates/list",
    };
    file.pointer_mut(place).unwrap().as_array_mut().unwrap()
}

/// A file in which one thing is not as it was proved; none where it has nothing of that kind to spoil.
fn forged(mut file: Value, way: usize) -> Option<Value> {
    let is_tree = file.get("nodes").is_some();
    let of_claim = |file: &mut Value, has: &dyn Fn(&Value) -> bool, spoil: &dyn Fn(&mut Value)| {
        let claim = claims(file).iter_mut().find(|claim| has(claim))?;
        spoil(claim);
        Some(())
    };
    match way {
        // A claim is dropped, or stands twice.
        0 => drop(claims(&mut file).remove(0)),
        1 => {
            let first = claims(&mut file)[0].clone();
            claims(&mut file).push(first);
        }
        // Scores lie within less.
        2 => of_claim(
            &mut file,
            &|claim| claim["property"].get("scores-within").is_some(),
            &|claim| {
                let min = claim["property"]["scores-within"]["min"].as_f64().unwrap();
                claim["property"]["scores-within"]["min"] = json!(min + 0.01 * (1.0 + min.abs()));
            },
        )?,
        // What is refuted is proved, or shown by the same row twice, or by rows in other leaves.
        3 => of_claim(
            &mut file,
            &|claim| claim["verdict"].get("refuted").is_some(),
            &|claim| claim["verdict"] = json!("proved"),
        )?,
        4 => of_claim(
            &mut file,
            &|claim| {
                claim["property"] == "starts-before-holding" && claim["verdict"].get("refuted").is_some()
            },
            &|claim| claim["verdict"]["refuted"]["first"] = claim["verdict"]["refuted"]["second"].clone(),
        )?,
        5 => of_claim(
            &mut file,
            &|claim| {
                claim["verdict"].get("refuted").is_some()
                    && claim["property"].get("leaf-is-reached").is_none()
            },
            &|claim| claim["verdict"]["refuted"]["leaves"][0] = json!(4_000_000),
        )?,
        // What is proved is refuted by rows that say nothing.
        6 => of_claim(
            &mut file,
            &|claim| claim["verdict"] == "proved" && claim["property"] == "monotone-in-waiting",
            &|claim| {
                claim["verdict"] = json!({"refuted": {"first": {}, "second": {}, "leaves": [0, 0]}});
            },
        )?,
        // A leaf was visited that nothing reaches, or more often than there are candidates.
        7 => {
            let dead = claims(&mut file).iter().find_map(|claim| {
                let leaf = claim["property"].get("leaf-is-reached")?;
                leaf["leaf"].as_u64()
            })?;
            let leaves = file.pointer_mut("/visits/leaves")?.as_array_mut()?;
            let visit = leaves.iter_mut().find(|visit| visit["leaf"] == dead)?;
            visit["offered"] = json!(3);
        }
        8 => {
            let most = file.pointer("/visits/decisions")?.as_u64()? * 64;
            *file.pointer_mut("/visits/leaves/0/offered")? = json!(most + 1);
        }
        // Nothing is said of a leaf that nothing reaches.
        _ => {
            let list = claims(&mut file);
            let place = list
                .iter()
                .position(|claim| claim["property"].get("leaf-is-reached").is_some())?;
            list.remove(place);
        }
    }
    (is_tree || way < 4).then_some(file)
}

/// Files of trees and formulas as they are sealed: shipped ones and random ones.
fn sealed(folder: &Path) -> Vec<PathBuf> {
    let mut random = Seed(53).stream("certificates", 0);
    let mut texts: Vec<String> = TREES
        .iter()
        .map(|tree| std::fs::read_to_string(format!("{}/../{tree}", env!("CARGO_MANIFEST_DIR"))).unwrap())
        .collect();
    for _ in 0..NUM_RANDOM {
        let tree = tree(&mut random);
        let certificates = tree.certify();
        let dead = |id: u32| {
            certificates.iter().any(|own| {
                matches!(own.property, pleach_scheduler::tree::Property::LeafIsReached { leaf } if leaf == id)
            })
        };
        let mut visits = Visits::none(tree.num_leaves());
        visits.num_decisions = 1_000;
        visits.offered = tree
            .leaf_ids()
            .iter()
            .map(|id| if dead(*id) { 0 } else { 2_000 })
            .collect();
        let tree = tree.with_visits(visits).unwrap();
        texts.push(tree.with_certificates(certificates).to_json());
    }
    while texts.len() < TREES.len() + 2 * NUM_RANDOM {
        let text = expression(&mut random, 3);
        if let Ok(formula) = ScoreFormula::of("random", &text) {
            texts.push(formula.sealed().to_json());
        }
    }
    let write = |(number, text): (usize, String)| {
        let path = folder.join(format!("{number}.json"));
        std::fs::write(&path, text).unwrap();
        path
    };
    texts.into_iter().enumerate().map(write).collect()
}

#[test]
fn a_checker_without_our_code_confirms_what_is_claimed_and_finds_out_what_is_forged() {
    let Some(python) = pleach_tests::program(&["python3"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let files = sealed(folder.path());
    let mut num = BTreeMap::new();
    for (file, lines) in said(&python, &files) {
        for line in lines {
            assert!(
                !line.starts_with("wrong"),
                "{line}\n{}",
                std::fs::read_to_string(&file).unwrap()
            );
            let words: Vec<&str> = line.split(' ').collect();
            let kind = if words[0] == "open:" { "open" } else { words[1] };
            *num.entry(kind.to_owned()).or_insert(0_u32) += 1;
        }
    }
    // Else little was tried.
    assert!(
        num["proved:"] > 200 && num["refuted:"] > 100 && num["open"] > 20,
        "{num:?}"
    );

    let mut spoilt = BTreeMap::new();
    for file in &files {
        let whole: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for way in 0..10 {
            if let Some(forged) = forged(whole.clone(), way) {
                let path = file.with_extension(format!("{way}.json"));
                std::fs::write(&path, forged.to_string()).unwrap();
                spoilt.insert(path, way);
            }
        }
    }
    let (mut ways, mut unseen) = ([0; 10], Vec::new());
    let paths: Vec<PathBuf> = spoilt.keys().cloned().collect();
    for (path, lines) in said(&python, &paths) {
        let way = spoilt[&path];
        ways[way] += 1;
        if !lines.iter().any(|line| line.starts_with("wrong")) {
            let text = std::fs::read_to_string(&path).unwrap();
            unseen.push(format!("forged in way {way}: {lines:?}\n{text}"));
        }
    }
    assert!(
        unseen.is_empty(),
        "{} of {ways:?}\n{}",
        unseen.len(),
        unseen.join("\n")
    );
    assert!(ways.iter().all(|num| *num > 5), "{ways:?}");
}

/// *No job waits for a day while one that came an hour ago starts* holds of none of the shipped trees: each file has two candidates of
/// one decision that show it, and the second checker agrees. It is proved of a tree that asks for it.
#[test]
fn that_a_day_of_waiting_comes_before_an_hour_is_refuted_of_shipped_trees_and_proved_of_one_that_looks_at_it()
{
    let Some(python) = pleach_tests::program(&["python3"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wait = FeatureSchema::current().named("wait_s").unwrap();
    let leaf = |id, score| Node::Leaf {
        id,
        score,
        samples: 1,
        weight: 1.0,
    };
    let nodes = [
        Node::Split {
            feature: FeatureSchema::current().joined_index("wait_s").unwrap() as u16,
            threshold: wait.encode(43_200.0),
            left: 1,
            right: 2,
        },
        leaf(0, 0.0),
        leaf(1, 1.0),
    ];
    let mut random = Seed(1).stream("certificates", 0);
    let patient = Tree::new(tree(&mut random).meta().clone(), &nodes).unwrap();
    let certificates = patient.certify();
    let own = folder.path().join("patient.json");
    std::fs::write(&own, patient.with_certificates(certificates).to_json()).unwrap();
    let root = |tree: &&str| PathBuf::from(format!("{}/../{tree}", env!("CARGO_MANIFEST_DIR")));
    let files: Vec<PathBuf> = TREES.iter().map(root).chain([own.clone()]).collect();
    for (file, lines) in said(&python, &files) {
        let verdict = if file == own { "proved" } else { "refuted" };
        let wanted = format!("confirmed: {verdict}: waiting-outranks");
        assert!(lines.iter().any(|line| line.starts_with(&wanted)), "{lines:?}");
    }
}
