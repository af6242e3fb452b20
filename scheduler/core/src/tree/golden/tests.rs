use super::super::tests::{any_tree, keyed_tree, leaf, meta, small_tree, split};
use super::*;
use proptest::strategy::{Strategy as _, ValueTree as _};
use std::process::Command;

/// Minted with rule 1. Another value is another rule.
const KEYED: &str = "39321395d9b9867920293c0ddc4501b30f17b73f2457d45964ae1b442232ea32";

#[test]
fn the_rule_gives_the_rows_and_the_hash_that_it_gave() {
    let golden = keyed_tree().golden();
    assert_eq!((golden.num_rows, golden.sha256.as_str()), (1006, KEYED));
    let rows = small_tree().golden_rows(2);
    // 1_664_525 * 1 + 1_013_904_223 = 1_015_568_748; over 256: 3_967_065; over 2^22, less 1.
    assert_eq!(rows[0][1], {
        let second = 1_015_568_748_u32
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223)
            >> 8;
        second as f32 / 4_194_304.0 - 1.0
    });
    // The first row lies on the first split's threshold.
    assert_eq!((rows[0][0], rows[1][0]), (0.5, 0.5_f32.next_up()));
}

#[test]
fn every_split_is_met_on_its_threshold_and_a_bit_to_either_side() {
    // The same feature three times on one way, so that an aim that forgets the way misses.
    let nodes = [
        split("num_gpus", 8.0, 1, 2),
        split("num_gpus", 2.0, 3, 4),
        split("num_gpus", 64.0, 5, 6),
        leaf(0, 0.0),
        split("wait_s", 600.0, 7, 8),
        leaf(3, 0.0),
        leaf(4, 0.0),
        leaf(1, 0.0),
        leaf(2, 0.0),
    ];
    let tree = Tree::new(meta(), &nodes).unwrap();
    let rows = tree.golden_rows(3 * 4);
    let mut aimed = rows.chunks_exact(3);
    for (place, node) in tree.nodes().iter().enumerate() {
        let Node::Split {
            feature,
            threshold,
            left,
            right,
        } = *node
        else {
            continue;
        };
        let met = aimed.next().unwrap();
        let sides: Vec<f32> = met.iter().map(|row| row[usize::from(feature)]).collect();
        assert_eq!(sides, [threshold, threshold.next_up(), threshold.next_down()]);
        let children: Vec<usize> = met.iter().map(|row| child_below(&tree, place, row)).collect();
        let (left, right) = (left as usize, right as usize);
        assert_eq!(children, [left, right, left], "split {place}");
    }
}

/// Where a row goes from a split that it comes to.
fn child_below(tree: &Tree, split: usize, row: &[f32]) -> usize {
    let (mut at, mut before) = (0, usize::MAX);
    while before != split {
        let Node::Split {
            feature,
            threshold,
            left,
            right,
        } = tree.nodes()[at]
        else {
            panic!("the row never comes to split {split}");
        };
        before = at;
        at = if row[usize::from(feature)] <= threshold {
            left
        } else {
            right
        } as usize;
    }
    at
}

#[test]
fn one_bit_of_a_threshold_score_or_weight_is_another_hash() {
    let tree = keyed_tree();
    let own = tree.golden().sha256;
    for place in 0..tree.nodes().len() {
        let mut nodes = tree.nodes().to_vec();
        match &mut nodes[place] {
            Node::Split { threshold, .. } => *threshold = threshold.next_up(),
            Node::Leaf { score, .. } => *score = score.next_up(),
        }
        let other = Tree::new(tree.meta().clone(), &nodes).unwrap();
        assert_ne!(other.golden().sha256, own, "node {place}");
    }
    for term in 0..3 {
        let mut meta = tree.meta().clone();
        meta.key_weights[term].weight = meta.key_weights[term].weight.next_up();
        let other = Tree::new(meta, tree.nodes()).unwrap();
        assert_ne!(other.golden().sha256, own, "weight {term}");
    }
}

/// The rule as `docs/policy-file.md` states it in Python, run on files of this program.
#[test]
fn another_implementation_of_the_stated_rule_finds_the_same_hash() {
    let Some(python) = pleach_tests::program(&["python3"]) else {
        return;
    };
    let page = include_str!("../../../../../docs/policy-file.md");
    let code = page
        .split("```python golden\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let folder = std::env::temp_dir().join(format!("pleach-golden-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("golden.py"), code).unwrap();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut trees = vec![small_tree(), keyed_tree()];
    for _ in 0..3 {
        trees.push(any_tree().new_tree(&mut runner).unwrap().current());
    }
    for tree in trees {
        let sealed = tree.with_golden();
        std::fs::write(folder.join("tree.json"), sealed.to_json()).unwrap();
        let found = Command::new(&python)
            .args(["golden.py", "tree.json"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(
            found.status.success(),
            "{}",
            String::from_utf8_lossy(&found.stderr)
        );
        assert_eq!(
            String::from_utf8_lossy(&found.stdout).trim(),
            sealed.golden().sha256
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
