//! Files and text of selectors.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{MAX_LEAVES, Selector, SelectorMeta, SelectorNode};
use crate::estimate::Provenance;
use crate::features::FeatureSchema;
use crate::heuristics::names;
use crate::observation::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES};
use crate::tree::MAX_BYTES;

pub(super) fn meta() -> SelectorMeta {
    SelectorMeta {
        name: "test".into(),
        estimates: vec![Provenance::Oracle],
        trained_by: BTreeMap::from([("seed".to_string(), serde_json::json!(7))]),
    }
}

pub(super) fn leaf(id: u32, rule: &str) -> SelectorNode {
    SelectorNode::Leaf {
        id,
        rule: rule.into(),
    }
}

pub(super) fn split(name: &str, raw: f32, left: u32, right: u32) -> SelectorNode {
    let schema = FeatureSchema::current();
    let index = schema.joined_index(name).unwrap();
    SelectorNode::Split {
        feature: index as u16,
        threshold: schema.joined(index).unwrap().encode(raw),
        left,
        right,
    }
}

fn small() -> Selector {
    let nodes = [
        split("pending_gpus_ratio", 0.7, 2, 1),
        leaf(1, "easy"),
        split("oldest_wait_s", 7200.0, 3, 4),
        leaf(2, "gpu-time-delay"),
        leaf(3, "easy"),
    ];
    Selector::new(meta(), &nodes).unwrap()
}

fn refusal(text: &str) -> String {
    Selector::from_json(text).unwrap_err().to_string()
}

/// A selector grown by splitting leaves: (which leaf, feature, threshold from 0 to 1, rule).
fn any_selector() -> impl Strategy<Value = Selector> {
    let step = (
        any::<usize>(),
        0..NUM_GLOBAL_FEATURES,
        0.01_f32..0.99,
        0..names().len(),
    );
    prop::collection::vec(step, 0..MAX_LEAVES).prop_map(|steps| {
        let mut nodes = vec![leaf(0, names()[0])];
        for (which, global, share, rule) in steps {
            let leaves: Vec<usize> = (0..nodes.len())
                .filter(|place| matches!(nodes[*place], SelectorNode::Leaf { .. }))
                .collect();
            let place = leaves[which % leaves.len()];
            let index = NUM_CANDIDATE_FEATURES + global;
            let found = FeatureSchema::current().joined(index).unwrap();
            let (min, max) = (found.encode(found.min), found.encode(found.max));
            let old = nodes[place].clone();
            let (left, right) = (nodes.len() as u32, nodes.len() as u32 + 1);
            nodes[place] = SelectorNode::Split {
                feature: index as u16,
                threshold: min + share * (max - min),
                left,
                right,
            };
            nodes.push(old);
            nodes.push(leaf(right, names()[rule]));
        }
        Selector::new(meta(), &nodes).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_selector_survives_its_file_byte_for_byte(selector in any_selector()) {
        let text = selector.to_json();
        let read = Selector::from_json(&text).unwrap();
        prop_assert_eq!(&read, &selector);
        prop_assert_eq!(read.to_json(), text);
        prop_assert!(selector.num_leaves() <= MAX_LEAVES && selector.depth() < MAX_LEAVES);
    }

    #[test]
    fn what_is_cut_or_changed_is_refused_or_read_and_never_panics(at in 0.0_f64..1.0, byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = small().to_json().into_bytes();
        let place = (at * (bytes.len() - 3) as f64) as usize;
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] = byte;
        }
        let read = Selector::from_json(&String::from_utf8_lossy(&bytes));
        if cut {
            prop_assert!(read.is_err());
        }
    }
}

#[test]
fn a_selector_reads_as_nested_conditions_with_its_rules_and_features() {
    let text = small().to_text();
    assert_eq!(
        text,
        "test: 3 leaves, depth 2; in each leaf one heuristic decides\n\
         if pending_gpus_ratio <= 0.7:\n    \
         if oldest_wait_s <= 7,200 s (2.0 h):\n        \
         gpu-time-delay (leaf 2)\n    \
         else:\n        \
         easy (leaf 3)\n\
         else:\n    \
         easy (leaf 1)\n\
         gpu-time-delay: as gpu-time-reserve, but a long job waits for a tight place for half its run time.\n\
         easy: the oldest job or its reservation, then what does not delay it by arrival.\n\
         pending_gpus_ratio: GPUs that waiting jobs ask for over all GPUs.\n\
         oldest_wait_s [s]: Waiting time of the oldest waiting job.\n"
    );
}

#[test]
fn a_file_is_refused_with_what_is_wrong_and_what_is_allowed() {
    let good = small().to_json();
    let cases = [
        (
            "\"oldest_wait_s\",\"thr",
            "\"oldest_wait\",\"thr",
            "node 1: there is no feature \"oldest_wait\"",
        ),
        (
            "\"oldest_wait_s\",\"thr",
            "\"remaining_s\",\"thr",
            "remaining_s is a feature of a candidate",
        ),
        (
            "\"gpu-time-delay\"",
            "\"gpu-time-delya\"",
            "did you mean gpu-time-delay?",
        ),
        (
            "\"version\": 1",
            "\"version\": 2",
            "has version 2; this program reads versions 1 to 1",
        ),
        (
            "pleach-selector",
            "pleach-tree",
            "the file says format \"pleach-tree\"; a policy file says \"pleach-selector\"",
        ),
        (
            "\"left\":1",
            "\"left\":0",
            "node 0: its child 0 leads back to it: the nodes form a cycle",
        ),
        ("\"left\":1", "\"left\":4", "already has a parent"),
        (
            "\"left\":1",
            "\"left\":77",
            "its child 77 does not exist; there are 5 nodes",
        ),
        ("\"leaf\":3", "\"leaf\":1", "another leaf also has the id 1"),
        ("\"leaf\":3,", "", "this one has [rule]"),
        (
            "\"name\": \"test\"",
            "\"name\": \"\"",
            "name = \"\": allowed is 1 to 200 bytes",
        ),
        ("\"name\": \"test\"", "\"nom\": \"test\"", "unknown field `nom`"),
        (
            "\"raw\":7200.0",
            "\"raw\":1e9",
            " s: allowed is 0 to 100000000, the largest excluded",
        ),
        (
            "\"schema_hash\": \"",
            "\"schema_hash\": \"0",
            "was made for another feature schema",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(good.contains(from), "{from}\n{good}");
        let text = refusal(&good.replacen(from, to, 1));
        assert!(text.contains(expected), "{from} -> {to}: {text}");
    }
    for nan in ["NaN", "1e999", "null"] {
        let start = good.find("\"threshold\":").unwrap();
        let end = start + good[start..].find(',').unwrap();
        let text = format!("{}\"threshold\":{nan}{}", &good[..start], &good[end..]);
        assert!(Selector::from_json(&text).is_err(), "{nan}");
    }
    let padded = format!("{good}{}", " ".repeat(MAX_BYTES as usize));
    assert!(refusal(&padded).contains("bytes or more"));
}

#[test]
fn a_raw_threshold_that_a_person_changed_is_what_runs() {
    let good = small().to_json();
    let edited = good.replacen("\"raw\":7200.0", "\"raw\":3600.0", 1);
    assert_ne!(edited, good);
    let read = Selector::from_json(&edited).unwrap();
    assert!(
        read.to_text().contains("if oldest_wait_s <= 3,600 s (60.0 min):"),
        "{}",
        read.to_text()
    );
}

#[test]
fn wide_and_odd_selectors_are_refused() {
    let mut nodes = Vec::new();
    for place in 0..MAX_LEAVES as u32 {
        nodes.push(split(
            "num_pending",
            1.0 + place as f32,
            2 * place + 1,
            2 * place + 2,
        ));
        nodes.push(leaf(place, "sjf"));
    }
    nodes.push(leaf(MAX_LEAVES as u32, "easy"));
    let text = Selector::new(meta(), &nodes).unwrap_err().to_string();
    assert!(
        text.contains("the tree has 129 nodes; allowed are 1 to 127"),
        "{text}"
    );
    assert!(Selector::new(meta(), &[]).is_err());
    let beyond = [split("num_pending", 1e6, 1, 2), leaf(0, "sjf"), leaf(1, "easy")];
    let text = Selector::new(meta(), &beyond).unwrap_err().to_string();
    assert!(text.contains("so one side could never be reached"), "{text}");
    let lost = [leaf(0, "sjf"), leaf(1, "easy")];
    let text = Selector::new(meta(), &lost).unwrap_err().to_string();
    assert!(text.contains("node 1: no path from node 0 leads to it"), "{text}");
}

#[test]
fn a_file_on_disk_is_told_from_others_and_survives() {
    let folder = std::env::temp_dir().join(format!("pleach-selector-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("selector.json");
    small().save(&path).unwrap();
    assert!(Selector::is_in(&path).unwrap());
    assert_eq!(Selector::load(&path).unwrap(), small());
    std::fs::write(&path, "{\"format\": \"pleach-tree\"}").unwrap();
    assert!(!Selector::is_in(&path).unwrap());
    std::fs::write(&path, "no json").unwrap();
    assert!(!Selector::is_in(&path).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(Selector::is_in(&path).is_err());
}
