//! Trees written by hand, for tests.

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta};

pub(crate) fn meta() -> TreeMeta {
    TreeMeta {
        name: "test".into(),
        tie_key: TieKey::Index,
        key_weights: Vec::new(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: Default::default(),
    }
}

pub(crate) fn leaf(id: u32, score: f32, weight: f64) -> Node {
    Node::Leaf {
        id,
        score,
        samples: 4,
        weight,
    }
}

/// A split of `gpu_fraction`.
pub(crate) fn split(threshold: f32, left: u32, right: u32) -> Node {
    let feature = FeatureSchema::current().joined_index("gpu_fraction").unwrap() as u16;
    Node::Split {
        feature,
        threshold,
        left,
        right,
    }
}

pub(crate) fn tree(nodes: &[Node]) -> Tree {
    Tree::new(meta(), nodes).unwrap()
}
