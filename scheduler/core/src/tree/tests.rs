//! What is a tree, and what is none.

use super::*;
use crate::features::Group;
use crate::features::decision::FEATURES;
use proptest::prelude::*;

const NUM_FEATURES: u16 = FEATURES.len() as u16;

pub(crate) fn meta() -> TreeMeta {
    TreeMeta {
        name: "test".into(),
        tie_key: TieKey::ShortestEstimate,
        key_weights: Vec::new(),
        needs: Needs::full(),
        estimates: vec![Provenance::Oracle],
        trained_by: BTreeMap::from([("seed".to_string(), serde_json::json!(7))]),
    }
}

pub(crate) fn leaf(id: u32, score: f32) -> Node {
    Node::Leaf {
        id,
        score,
        samples: 10,
        weight: 1.5,
    }
}

pub(crate) fn split(name: &str, raw: f32, left: u32, right: u32) -> Node {
    let schema = FeatureSchema::current();
    let index = schema.joined_index(name).unwrap();
    let threshold = schema.joined(index).unwrap().encode(raw);
    Node::Split {
        feature: index as u16,
        threshold,
        left,
        right,
    }
}

/// Hold below everything; small jobs first.
pub(crate) fn small_tree() -> Tree {
    let nodes = [
        split("is_hold", 0.5, 1, 2),
        split("gpu_time_gpu_s", 3600.0, 3, 4),
        leaf(0, -1.0),
        leaf(1, 1.0),
        leaf(2, 0.25),
    ];
    Tree::new(meta(), &nodes).unwrap()
}

pub(crate) fn weight(name: &str, weight: f32) -> KeyWeight {
    let feature = FeatureSchema::current().joined_index(name).unwrap() as u16;
    KeyWeight { feature, weight }
}

/// The same with a key of three features.
pub(crate) fn keyed_tree() -> Tree {
    let tree = small_tree();
    let mut meta = tree.meta().clone();
    meta.key_weights = vec![
        weight("speed_ratio", 0.22),
        weight("num_left", -0.73),
        weight("num_gpus", 0.009),
    ];
    Tree::new(meta, tree.nodes()).unwrap()
}

/// Random valid keys.
pub(crate) fn any_key() -> impl Strategy<Value = Vec<KeyWeight>> {
    let of_rows: Vec<u16> = (0..NUM_FEATURES)
        .filter(|number| FEATURES[usize::from(*number)].group == Group::Row)
        .collect();
    let term = (prop::sample::select(of_rows), 0.001..3.0_f32, any::<bool>());
    prop::collection::vec(term, 0..=4).prop_map(|terms| {
        let mut key: Vec<KeyWeight> = Vec::new();
        for (feature, weight, is_less) in terms {
            if key.iter().all(|term| term.feature != feature) {
                let weight = if is_less { -weight } else { weight };
                key.push(KeyWeight { feature, weight });
            }
        }
        key
    })
}

/// Random valid trees: repeatedly a leaf becomes a split.
pub(crate) fn any_tree() -> impl Strategy<Value = Tree> {
    let step = (any::<u16>(), 0..NUM_FEATURES, 0.0..1.0_f32, -2.0..2.0_f32);
    (prop::collection::vec(step, 0..40), -2.0..2.0_f32, any_key()).prop_map(|(steps, first, key)| {
        let mut nodes = vec![leaf(0, first)];
        for (number, (which, feature, share, score)) in steps.into_iter().enumerate() {
            let leaves: Vec<usize> = (0..nodes.len())
                .filter(|index| matches!(nodes[*index], Node::Leaf { .. }))
                .collect();
            let place = leaves[usize::from(which) % leaves.len()];
            let found = &FEATURES[usize::from(feature)];
            let (min, max) = (found.encode(found.min), found.encode(found.max));
            let threshold = min + (max - min) * share * 0.999;
            let (left, right) = (nodes.len() as u32, nodes.len() as u32 + 1);
            let old = nodes[place];
            nodes[place] = Node::Split {
                feature,
                threshold,
                left,
                right,
            };
            nodes.push(old);
            nodes.push(leaf(number as u32 + 1, score));
        }
        let key_weights = key;
        let meta = TreeMeta {
            key_weights,
            ..meta()
        };
        Tree::new(meta, &nodes).unwrap()
    })
}

fn reason(nodes: &[Node]) -> NodeError {
    match Tree::new(meta(), nodes).unwrap_err() {
        TreeError::Node { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_not_one_tree_is_refused_with_the_reason() {
    let top = |left, right| split("num_gpus", 4.0, left, right);
    assert!(matches!(
        reason(&[top(1, 9), leaf(0, 0.0), leaf(1, 0.0)]),
        NodeError::Dangling { child: 9, .. }
    ));
    assert!(matches!(
        reason(&[top(1, 0), leaf(0, 0.0)]),
        NodeError::Cycle { child: 0 }
    ));
    assert!(matches!(
        reason(&[top(1, 2), top(3, 1), leaf(0, 0.0), leaf(1, 0.0)]),
        NodeError::Cycle { child: 1 }
    ));
    assert!(matches!(
        reason(&[top(1, 1), leaf(0, 0.0)]),
        NodeError::Shared { child: 1 }
    ));
    assert_eq!(
        reason(&[top(1, 2), leaf(0, 0.0), leaf(1, 0.0), leaf(2, 0.0)]),
        NodeError::Unreachable
    );
    assert!(matches!(
        reason(&[top(1, 2), leaf(0, 0.0), leaf(0, 0.0)]),
        NodeError::DuplicateLeaf { leaf: 0 }
    ));
    assert!(matches!(
        reason(&[leaf(0, f32::NAN)]),
        NodeError::NotFinite { what: "score" }
    ));
    assert!(matches!(
        Tree::new(meta(), &[]).unwrap_err(),
        TreeError::NumNodes { .. }
    ));
    let many = vec![leaf(0, 0.0); MAX_NODES + 1];
    assert!(matches!(
        Tree::new(meta(), &many).unwrap_err(),
        TreeError::NumNodes { .. }
    ));
}

#[test]
fn thresholds_that_split_nothing_are_refused() {
    for threshold in [f32::NAN, f32::INFINITY, -0.1, 1.0, 7.0] {
        let node = Node::Split {
            feature: 0,
            threshold,
            left: 1,
            right: 2,
        };
        let found = reason(&[node, leaf(0, 0.0), leaf(1, 1.0)]);
        assert!(
            matches!(found, NodeError::Range { .. } | NodeError::NotFinite { .. }),
            "{found}"
        );
    }
    let node = Node::Split {
        feature: NUM_FEATURES,
        threshold: 0.5,
        left: 1,
        right: 2,
    };
    assert!(matches!(
        reason(&[node, leaf(0, 0.0), leaf(1, 1.0)]),
        NodeError::UnknownFeature { .. }
    ));
}

#[test]
fn a_chain_deeper_than_the_bound_is_refused() {
    let chain = |depth: u32| {
        let mut nodes = Vec::new();
        for level in 0..depth {
            nodes.push(split("num_gpus", 4.0, 2 * level + 2, 2 * level + 1));
            nodes.push(leaf(level, 0.0));
        }
        nodes.push(leaf(depth, 0.0));
        nodes
    };
    let deepest = Tree::new(meta(), &chain(MAX_DEPTH as u32)).unwrap();
    assert_eq!(deepest.depth(), MAX_DEPTH);
    assert!(matches!(
        reason(&chain(MAX_DEPTH as u32 + 1)),
        NodeError::TooDeep { .. }
    ));
}

#[test]
fn the_facts_of_a_small_tree_are_those_seen_by_eye() {
    let tree = small_tree();
    assert_eq!((tree.num_leaves(), tree.depth()), (3, 2));
    assert_eq!(tree.features(), ["is_hold", "gpu_time_gpu_s"]);
    assert_eq!(tree.tiers(), [1.0, 0.25, -1.0]);
}

proptest! {
    #[test]
    fn the_order_of_the_nodes_in_the_list_does_not_matter(tree in any_tree(), swaps in prop::collection::vec(any::<(u16, u16)>(), 0..50)) {
        let count = tree.nodes().len();
        let mut at: Vec<u32> = (0..count as u32).collect();
        for (a, b) in swaps {
            if count > 2 {
                at.swap(1 + usize::from(a) % (count - 1), 1 + usize::from(b) % (count - 1));
            }
        }
        let mut shuffled = tree.nodes().to_vec();
        for (place, node) in tree.nodes().iter().enumerate() {
            let mut node = *node;
            if let Node::Split { left, right, .. } = &mut node {
                *left = at[*left as usize];
                *right = at[*right as usize];
            }
            shuffled[at[place] as usize] = node;
        }
        prop_assert_eq!(Tree::new(tree.meta().clone(), &shuffled).unwrap(), tree);
    }
}
