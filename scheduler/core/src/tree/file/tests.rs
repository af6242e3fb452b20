use super::super::tests::{any_tree, keyed_tree, meta, small_tree, weight};
use super::*;
use proptest::prelude::*;

fn refusal(text: &str) -> String {
    Tree::from_json(text).unwrap_err().to_string()
}

#[test]
fn a_policy_file_shows_raw_thresholds_with_their_unit() {
    let text = small_tree().to_json();
    let line = "{\"node\":1,\"feature\":\"gpu_time_gpu_s\",\"threshold\":0.44455";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("\"raw\":3600.0,\"unit\":\"GPU s\",\"left\":2,\"right\":3}"),
        "{text}"
    );
    assert!(
        text.contains("\"tie_key\": \"shortest-estimate\",\n  \"needs\": {\"preemption\":true"),
        "{text}"
    );
    assert!(text.contains("    \"candidate num_gpus [] 0 10000 Log(2.0)\",\n"));
}

#[test]
fn the_example_of_the_documentation_is_what_is_written() {
    let page = include_str!("../../../../../docs/policy-file.md");
    let tree = small_tree();
    let example = |language: &str| page.split(language).nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(example("```text\n"), tree.to_text());
    let json = tree.to_json();
    // Lines with an ellipsis stand for what changes with every schema.
    for line in example("```json\n").lines().filter(|line| !line.contains('…')) {
        let line = line.trim_end_matches(',');
        assert!(json.contains(line), "{line}");
    }
}

#[test]
fn each_refusal_names_its_reason() {
    let good = small_tree().to_json();
    let cases = [
        ("pleach-tree", "oak", "format \"oak\""),
        (
            "\"version\": 1",
            "\"version\": 4",
            "version 4; this program reads versions 1 to 3",
        ),
        ("\"name\": \"test\"", "\"name\": \"\"", "1 to 200 bytes"),
        ("gpu_time_gpu_s\"", "gpu_tyme\"", "no feature \"gpu_tyme\""),
        (
            "\"threshold\":0.44455",
            "\"threshold\":0.3",
            "it shows 3600 GPU s",
        ),
        ("\"raw\":3600.0", "\"raw\":-3.0", "allowed is 0 to "),
        ("\"raw\":3600.0", "\"raw\":1e60", "allowed is 0 to "),
        ("\"unit\":\"GPU s\"", "\"unit\":\"h\"", "means 3600 GPU s"),
        ("\"right\":4", "\"right\":40", "child 40 does not exist"),
        ("\"right\":4", "\"right\":3", "child 3 already has a parent"),
        ("\"right\":4", "\"right\":0", "form a cycle"),
        ("\"node\":3", "\"node\":4", "calls itself node 4"),
        ("\"score\":1.0,", "", "has [leaf, samples, weight]"),
        ("\"score\":1.0", "\"score\":1e60", ""),
        ("\"weight\":1.5", "\"weight\":-1.5", "weight -1.5 is negative"),
        ("\"tie_key\"", "\"tie\"", "unknown field `tie`"),
        ("\"heads\":2", "\"heads\":99", "heads 99"),
    ];
    for (from, to, reason) in cases {
        assert!(good.contains(from), "the example has no {from}");
        let text = refusal(&good.replacen(from, to, 1));
        assert!(text.contains(reason), "{from} -> {to}: {text}");
    }
    assert!(
        refusal(&" ".repeat(MAX_BYTES as usize + 1)).contains("at most 1048576"),
        "too large"
    );
    assert!(refusal(&"[".repeat(100_000)).contains("not of the expected form"));
}

#[test]
fn a_key_of_several_features_is_in_files_of_version_2_only_and_survives_them() {
    let text = keyed_tree().to_json();
    assert!(
        text.contains(
            "\"version\": 2,\n"
        ) && text.contains(
            "  \"key_weights\": [\n    {\"feature\":\"num_gpus\",\"weight\":0.009},\n    \
             {\"feature\":\"speed_ratio\",\"weight\":0.22},\n    {\"feature\":\"num_left\",\"weight\":-0.73}\n  ],\n"
        ),
        "{text}"
    );
    assert_eq!(Tree::from_json(&text).unwrap(), keyed_tree());
    // Without a key nothing has changed, whichever version the file says.
    let old = small_tree().to_json();
    assert!(old.contains("\"version\": 1,\n") && !old.contains("key_weights"));
    let newer = old.replace("\"version\": 1", "\"version\": 2");
    assert_eq!(Tree::from_json(&newer).unwrap().to_json(), old);
}

#[test]
fn keys_that_order_nothing_or_that_nobody_could_read_are_refused_with_their_place_and_the_fix() {
    let good = keyed_tree().to_json();
    let cases = [
        (
            "\"version\": 2",
            "\"version\": 1",
            "key_weights[0]: a file of version 1 has no key_weights",
        ),
        (
            "\"feature\":\"num_left\"",
            "\"feature\":\"num_lefd\"",
            "key_weights[2]: there is no feature \"num_lefd\"",
        ),
        (
            "\"feature\":\"num_left\"",
            "\"feature\":\"free_fraction\"",
            "key_weights[2]: free_fraction is a feature of the cluster",
        ),
        (
            "\"feature\":\"num_left\"",
            "\"feature\":\"num_gpus\"",
            "key_weights[2]: num_gpus has a weight already",
        ),
        (
            "\"weight\":-0.73",
            "\"weight\":0",
            "key_weights[2]: the weight of num_left is 0 and orders nothing",
        ),
        (
            "\"weight\":-0.73",
            "\"weight\":-0.0",
            "the weight of num_left is 0",
        ),
        (
            "\"weight\":-0.73",
            "\"weight\":1e60",
            "number out of range at line ",
        ),
        ("\"weight\":-0.73", "\"weight\":NaN", "line "),
        ("\"weight\":-0.73", "\"weight\":null", "line "),
        ("\"weight\":-0.73", "\"wait\":1", "unknown field `wait`"),
    ];
    for (from, to, reason) in cases {
        assert!(good.contains(from), "the example has no {from}");
        let text = refusal(&good.replacen(from, to, 1));
        assert!(text.contains(reason), "{from} -> {to}: {text}");
    }
    let line = "    {\"feature\":\"num_left\",\"weight\":-0.73}";
    let more = format!(
        "{line},\n    {{\"feature\":\"wait_s\",\"weight\":1}},\n    {{\"feature\":\"duration_s\",\"weight\":1}}"
    );
    let text = refusal(&good.replacen(line, &more, 1));
    assert!(
        text.contains("there are 5 weights, and at most 4 features are weighed"),
        "{text}"
    );
    // What is built in memory meets the same checks.
    let mut meta = meta();
    for (term, reason) in [
        (weight("num_left", f32::NAN), "not a finite number"),
        (
            KeyWeight {
                feature: 999,
                weight: 1.0,
            },
            "no feature \"number 999\"",
        ),
    ] {
        meta.key_weights = vec![term];
        let text = Tree::new(meta.clone(), small_tree().nodes())
            .unwrap_err()
            .to_string();
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn certificates_are_in_the_file_and_are_verified_when_it_is_read() {
    let tree = small_tree();
    let found = tree.certify();
    let certified = tree.clone().with_certificates(found);
    let text = certified.to_json();
    assert!(
        text.contains("\"version\": 2,") && text.contains("\"certificates\": {\"tree_hash\": "),
        "{text}"
    );
    assert_eq!(Tree::from_json(&text).unwrap(), certified);
    assert_eq!(Tree::from_json_uncertified(&text).unwrap(), tree);
    let proved = "{\"property\":\"monotone-in-waiting\",\"verdict\":\"proved\"}";
    let cases = [
        // The tree was changed since.
        (
            "\"score\":0.25",
            "\"score\":0.5",
            "certificates.tree_hash: they are of the tree ",
        ),
        // A verdict that was edited by hand.
        (
            proved,
            "{\"property\":\"monotone-in-waiting\",\"verdict\":{\"open\":\"?\"}}",
            "certificates.list[0]: that a job that waits longer",
        ),
        // Each is proved anew, so none is stated often.
        (proved, &format!("{proved},\n    {proved}"), "stands there twice"),
        (
            "\"version\": 2",
            "\"version\": 1",
            "certificates: a file of version 1 has none",
        ),
        (
            "\"monotone-in-waiting\"",
            "\"monotone-in-wating\"",
            "unknown variant `monotone-in-wating`",
        ),
    ];
    for (from, to, reason) in cases {
        assert!(text.contains(from), "the example has no {from} in {text}");
        let said = refusal(&text.replacen(from, to, 1));
        assert!(said.contains(reason), "{from} -> {to}: {said}");
        let is_told = said.contains("pleach distill seal FILE");
        assert!(is_told || !reason.starts_with("certificates"), "{said}");
    }
}

#[test]
fn either_number_of_a_threshold_can_be_changed_by_hand_and_both_at_once_must_agree() {
    let (tree, good) = (small_tree(), small_tree().to_json());
    let threshold_of = |text: &str| {
        let tree = Tree::from_json(text).unwrap();
        let shown = tree.to_json();
        let mut splits = tree.nodes().iter().filter_map(|node| match node {
            Node::Split { threshold, .. } => Some(*threshold),
            Node::Leaf { .. } => None,
        });
        (splits.next_back().unwrap(), shown)
    };
    let meant = |raw: f32| {
        let index = FeatureSchema::current().joined_index("gpu_time_gpu_s").unwrap();
        FeatureSchema::current().features[index].encode(raw)
    };
    // The raw one alone: it is what runs, and what is written from then on is whole.
    let (threshold, shown) = threshold_of(&good.replace("\"raw\":3600.0", "\"raw\":7200.0"));
    assert_eq!(threshold, meant(7200.0));
    assert!(shown.contains("\"raw\":7200.0") && shown.contains(&format!("\"threshold\":{threshold}")));
    assert_eq!(threshold_of(&shown), (threshold, shown.clone()));
    // The scaled one alone, its raw one left out.
    let written = format!("\"threshold\":{}", meant(3600.0));
    assert!(good.contains(&written), "{good}");
    let scaled = good
        .replace(&written, "\"threshold\":0.5")
        .replace("\"raw\":3600.0,", "");
    assert_eq!(threshold_of(&scaled).0, 0.5);
    // Which of two is meant cannot be known: neither where both were changed, nor in a file without the hash.
    let both = good
        .replace(&written, "\"threshold\":0.5")
        .replace("\"raw\":3600.0", "\"raw\":36.0");
    assert!(refusal(&both).contains("it shows 36 GPU s"));
    let hash = format!(
        "  \"thresholds_hash\": \"{}\",\n",
        thresholds_hash(tree.thresholds())
    );
    let old = good.replace(&hash, "");
    assert!(old.len() < good.len() && Tree::from_json(&old).unwrap() == tree);
    let said = refusal(&old.replace("\"raw\":3600.0", "\"raw\":36.0"));
    assert!(
        said.contains("it shows 36 GPU s") && said.contains("leave raw out"),
        "{said}"
    );
}

#[test]
fn another_schema_is_refused_with_both_sides_printed() {
    let good = small_tree().to_json();
    let text = refusal(
        &good
            .replace(
                "candidate gpu_time_gpu_s [GPU s] 0 10000000000 Log(8.0)",
                "candidate gpu_time_gpu_s [GPU s] 0 500 Log(8.0)",
            )
            .replace(FeatureSchema::current().hash(), &"0".repeat(64)),
    );
    assert!(
        text.contains("only in the file:    candidate gpu_time_gpu_s [GPU s] 0 500"),
        "{text}"
    );
    assert!(
        text.contains("only in the program: candidate gpu_time_gpu_s [GPU s] 0 10000000000"),
        "{text}"
    );
    assert!(
        text.contains(&"0".repeat(64)) && text.contains(FeatureSchema::current().hash()),
        "{text}"
    );
    // A hash alone does not help.
    let text = refusal(&good.replace("0 10000 Log(2.0)", "0 500 Log(2.0)"));
    assert!(
        text.contains("a hash that is not that of the columns listed"),
        "{text}"
    );
}

/// A column that the tree does not read may be another one in the file, or not there, if the list says so of itself.
#[test]
fn only_the_columns_that_are_read_have_to_be_the_same() {
    let good = small_tree().to_json();
    let schema = FeatureSchema::current();
    let with = |change: &dyn Fn(&str) -> Option<String>| {
        let (old, new): (String, String) = (
            schema.canonical(),
            schema
                .canonical()
                .lines()
                .filter_map(|line| change(line).map(|line| line + "\n"))
                .collect(),
        );
        let listed = |text: &str| {
            text.lines()
                .map(|line| format!("    \"{line}\""))
                .collect::<Vec<_>>()
                .join(",\n")
        };
        assert!(good.contains(&listed(&old)));
        good.replace(&listed(&old), &listed(&new))
            .replace(schema.hash(), &crate::features::hash_of(&new))
    };
    let is = |line: &str, name: &str| line.split(' ').nth(1) == Some(name);
    for name in ["num_gpus", "believed_drain_s"] {
        let other = with(&|line| {
            Some(if is(line, name) {
                line.replace("] 0 ", "] 1 ")
            } else {
                line.into()
            })
        });
        let without = with(&|line| (!is(line, name)).then(|| line.into()));
        let more = with(&|line| {
            Some(if is(line, name) {
                format!("{line}\ncandidate new [] 0 1 Linear(1.0)")
            } else {
                line.into()
            })
        });
        for text in [other, without, more] {
            let read = Tree::from_json(&text).unwrap();
            assert_eq!(read, small_tree());
            assert_eq!(read.to_json(), good, "it is written as ever");
        }
    }
    let name = "gpu_time_gpu_s";
    let text = refusal(&with(&|line| (!is(line, name)).then(|| line.into())));
    assert!(
        text.contains("only in the program: candidate gpu_time_gpu_s"),
        "{text}"
    );
}

#[test]
fn a_saved_policy_is_the_one_that_is_loaded() {
    let path = std::env::temp_dir().join(format!("pleach-tree-{}.json", std::process::id()));
    let tree = small_tree();
    tree.save(&path).unwrap();
    assert_eq!(Tree::load(&path).unwrap(), tree);
    std::fs::remove_file(&path).unwrap();
    let text = Tree::load(&path).unwrap_err().to_string();
    assert!(text.contains("pleach-tree-"), "{text}");
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(tree in any_tree()) {
        let text = tree.to_json();
        let back = Tree::from_json(&text).unwrap();
        prop_assert_eq!(&back, &tree);
        prop_assert_eq!(back.to_json(), text);
    }

    #[test]
    fn mutilated_files_are_refused_or_read_but_never_panic(
        tree in any_tree(),
        cuts in prop::collection::vec((any::<u32>(), 0..12_usize, "[-0-9a-z{}\\[\\]\",:.]{0,6}"), 1..4),
    ) {
        let mut text = tree.to_json();
        // The nodes are what an attacker can play with; most cuts go there.
        let nodes = text.find("\"nodes\"").unwrap_or(0);
        for (at, length, insert) in cuts {
            let start = if at % 4 == 0 { 0 } else { nodes.min(text.len() - 1) };
            let at = start + at as usize % (text.len() - start);
            let end = (at + length).min(text.len());
            text.replace_range(at..end, &insert);
        }
        if let Ok(tree) = Tree::from_json(&text) {
            let _ = tree.to_text();
            prop_assert_eq!(Tree::from_json(&tree.to_json()).unwrap(), tree);
        }
    }
}
