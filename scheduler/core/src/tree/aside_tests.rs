//! Where a tree steps aside: what its fallback decides, and files.

use proptest::prelude::*;

use super::tests::{any_tree, leaf, meta, small_tree};
use super::{Tree, TreeError, TreePolicy};
use crate::cluster::Capabilities;
use crate::cluster::tests::{cluster_of, submit};
use crate::cluster_spec::ClusterSpec;
use crate::heuristics::tests::world::{cluster_with, events, happen, watched_pass};
use crate::heuristics::{Ranking, names};
use crate::policy::{DecisionPoint, Policy};
use crate::wide_gangs::WideGangs;

fn narrow(tree: Tree, fallback: &str, most: u32) -> Tree {
    let tree = tree.with_fallback(Some(fallback.into())).unwrap();
    tree.with_gpu_types_max(Some(most)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// On clusters of more types the fallback's first candidate is chosen, on others the tree's; no leaf is named for the first.
    #[test]
    fn the_fallback_decides_exactly_where_there_are_more_types(
        tree in any_tree(),
        mut cluster in prop_oneof![
            cluster_with(1, any::<bool>().boxed(), Capabilities::DEFAULT),
            cluster_with(2, any::<bool>().boxed(), Capabilities::DEFAULT),
        ],
        events in events(30),
        which in 0..names().len(),
        most in 1_u32..3,
    ) {
        let mut policy = TreePolicy::new(narrow(tree.clone(), names()[which], most));
        let mut plain = TreePolicy::new(tree);
        let mut chooser = policy.clone();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, &mut policy, |cluster, pass| {
                let (mut own, mut other) = (pass.clone(), pass.clone());
                let choice = own.decide(cluster, &mut chooser).unwrap();
                let point = DecisionPoint {
                    cluster,
                    candidates: own.candidates(),
                    observation: own.observation().as_ref(),
                };
                if cluster.num_types() > most as usize {
                    let first = Ranking::new(names()[which]).unwrap().order(point).unwrap().next();
                    assert_eq!(Some(choice), first);
                    assert_eq!(chooser.leaf(point, choice), None);
                    let text = chooser.explain(&point, choice).unwrap().to_string();
                    let (first, rest) = text.split_once('\n').unwrap();
                    let decider = format!(": {} decides: the cluster has 2 GPU types, and the tree was judged on 1", names()[which]);
                    assert!(first.ends_with(&decider), "{text}");
                    // No tree has guards here, so there is nothing more to say: no path, no tier, no key.
                    assert_eq!(rest, "");
                } else {
                    assert_eq!(choice, other.decide(cluster, &mut plain).unwrap());
                    assert!(chooser.leaf(point, choice).is_some());
                }
            });
            cluster.check();
        }
    }
}

#[test]
fn a_file_says_where_its_tree_steps_aside() {
    let tree = narrow(small_tree(), "gpu-time-reserve", 1);
    let text = tree.to_json();
    assert!(
        text.contains("  \"fallback\": \"gpu-time-reserve\",\n  \"gpu_types_max\": 1,\n"),
        "{text}"
    );
    let read = Tree::from_json(&text).unwrap();
    assert_eq!((read.gpu_types_max(), read.to_json()), (Some(1), text.clone()));
    assert!(
        tree.to_text()
            .contains("\nGuard: on clusters of more than 1 GPU type gpu-time-reserve decides")
    );
    // What decides elsewhere is part of what decides.
    assert_ne!(tree.hash(), small_tree().hash());
    assert_ne!(tree.hash(), narrow(small_tree(), "sjf", 1).hash());
    let error = |text: &str| Tree::from_json(text).unwrap_err().to_string();
    let cases = [
        (
            text.replace("\"version\": 2", "\"version\": 1"),
            "in a file of version 1",
        ),
        (
            text.replace("\"gpu_types_max\": 1", "\"gpu_types_max\": 0"),
            "gpu_types_max = 0: allowed is 1 to 64",
        ),
        (
            text.replace("\"gpu_types_max\": 1", "\"gpu_types_max\": 65"),
            "gpu_types_max = 65: allowed is 1 to 64",
        ),
        (
            text.replace("\"gpu_types_max\": 1", "\"gpu_types_max\": -1"),
            "gpu_types_max: ",
        ),
        (
            text.replace("  \"fallback\": \"gpu-time-reserve\",\n", ""),
            "gpu_types_max = 1: allowed is none without a fallback",
        ),
    ];
    for (text, wanted) in cases {
        assert!(error(&text).contains(wanted), "{} and not {wanted}", error(&text));
    }
    let left: TreeError = tree.with_fallback(None).unwrap_err();
    assert!(left.to_string().contains("none without a fallback"), "{left}");
}

#[test]
fn a_tree_of_one_leaf_may_step_aside_too() {
    let tree = Tree::new(meta(), &[leaf(0, 0.0)]).unwrap();
    assert_eq!(narrow(tree, "fifo", 64).gpu_types_max(), Some(64));
}

/// Above two nodes or a quarter of all GPUs a job; `sjf` where run times are guessed.
fn wide(guessed_at_any_width: bool) -> WideGangs {
    WideGangs {
        policy: "gpu-time-reserve".into(),
        nodes_per_job: 2.0,
        gpus_part: Some(0.25),
        guessed: Some("sjf".into()),
        guessed_at_any_width,
    }
}

#[test]
fn a_file_says_what_decides_wide_gangs_and_refuses_what_cannot() {
    let tree = small_tree().with_wide_gangs(Some(wide(true))).unwrap();
    let text = tree.to_json();
    let line = "  \"wide_gangs\": {\"policy\":\"gpu-time-reserve\",\"nodes_per_job\":2.0,\"gpus_part\":0.25,\
                \"guessed\":\"sjf\",\"guessed_at_any_width\":true},\n";
    assert!(text.contains(line) && text.contains("\"version\": 2"), "{text}");
    let read = Tree::from_json(&text).unwrap();
    assert_eq!(
        (read.wide_gangs(), read.to_json()),
        (Some(&wide(true)), text.clone())
    );
    assert!(
        tree.to_text().contains(
            "\nGuard: gpu-time-reserve (sjf where run times are guessed, at any width) decides where jobs have more than 2 nodes, or \
             more than 25 % of all GPUs, each in the mean"
        ),
        "{}",
        tree.to_text()
    );
    assert_ne!(tree.hash(), small_tree().hash());
    let narrower = small_tree().with_wide_gangs(Some(wide(false))).unwrap();
    assert_ne!(tree.hash(), narrower.hash());
    for (from, to, wanted) in [
        ("\"version\": 2", "\"version\": 1", "in a file of version 1"),
        ("\":2.0,\"gpus", "\":0.0,\"gpus", "wide_gangs.nodes_per_job = 0"),
        ("\":2.0,\"gpus", "\":1000.5,\"gpus", "at most 1000"),
        ("\":0.25", "\":1.25", "wide_gangs.gpus_part = 1.25"),
        ("\"sjf\"", "\"sjff\"", "sjff"),
        ("\"gpu-time-reserve\"", "\"tree\"", "wide_gangs = tree (sjf where"),
        (
            "\"guessed\":",
            "\"guesed\":",
            "wide_gangs: unknown field `guesed`",
        ),
        ("at_any_width\":true", "at_any_width\":1", "wide_gangs: "),
    ] {
        let said = Tree::from_json(&text.replace(from, to)).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said} and not {wanted}");
    }
}

#[test]
fn wide_gangs_are_left_to_a_heuristic_which_says_so() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(4, 8, 4));
    let tree = small_tree().with_wide_gangs(Some(wide(true))).unwrap();
    submit(&mut cluster, 8, 100.0);
    assert_eq!(
        (tree.decider(&cluster), tree.aside(&cluster, "mine")),
        (None, None)
    );
    submit(&mut cluster, 9, 100.0);
    assert_eq!(tree.decider(&cluster), Some("gpu-time-reserve"));
    assert_eq!(
        tree.aside(&cluster, "mine").unwrap(),
        "gpu-time-reserve decides: gangs are wide, and mine was not judged on such"
    );
}
