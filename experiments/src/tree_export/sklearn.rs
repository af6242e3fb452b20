//! A tree as the arrays of `sklearn.tree._tree.Tree`, under the names that these have there.
//!
//! scikit-learn compares a 32-bit feature with a 64-bit threshold and returns a 64-bit value. Both are 32-bit floats here, written
//! so that 64 bits read exactly them. Of samples a policy file keeps those of its leaves: `value` of a split is the mean of the
//! leaves under it by their weights, for readers and plots, and `impurity`, which nothing in the file says, is 0.

use super::columns::columns;
use pleach_scheduler::policy::TieKey;
use pleach_scheduler::tree::{Node, Tree};
use serde::Serialize;

/// What scikit-learn writes for a child that is not there.
const NO_CHILD: i64 = -1;
/// And for feature and threshold of a leaf.
const UNDEFINED: i64 = -2;

/// One entry for each node; the root is first.
#[derive(Serialize)]
struct Arrays<'a> {
    name: &'a str,
    features_hash: String,
    features: Vec<&'static str>,
    max_depth: usize,
    children_left: Vec<i64>,
    children_right: Vec<i64>,
    feature: Vec<i64>,
    threshold: Vec<f64>,
    value: Vec<f64>,
    n_node_samples: Vec<u64>,
    weighted_n_node_samples: Vec<f64>,
    key_weights: Vec<(u16, f64)>,
    tie_key: TieKey,
}

/// The text of `tree_sklearn.json`.
pub(super) fn arrays(tree: &Tree) -> String {
    let count = tree.nodes().len();
    let key = tree.meta().key_weights.iter();
    let mut arrays = Arrays {
        name: &tree.meta().name,
        features_hash: tree.features_hash(),
        features: columns(tree),
        max_depth: tree.depth(),
        children_left: vec![NO_CHILD; count],
        children_right: vec![NO_CHILD; count],
        feature: vec![UNDEFINED; count],
        threshold: vec![UNDEFINED as f64; count],
        value: vec![0.0; count],
        n_node_samples: vec![0; count],
        weighted_n_node_samples: vec![0.0; count],
        key_weights: key.map(|own| (own.feature, own.weight.into())).collect(),
        tie_key: tree.meta().tie_key,
    };
    // Children come after their parents.
    for (place, node) in tree.nodes().iter().enumerate().rev() {
        match *node {
            Node::Leaf {
                score,
                samples,
                weight,
                ..
            } => {
                arrays.value[place] = score.into();
                arrays.n_node_samples[place] = samples;
                arrays.weighted_n_node_samples[place] = weight;
            }
            Node::Split {
                feature,
                threshold,
                left,
                right,
            } => {
                arrays.children_left[place] = left.into();
                arrays.children_right[place] = right.into();
                arrays.feature[place] = feature.into();
                arrays.threshold[place] = threshold.into();
                arrays.join(place, left as usize, right as usize);
            }
        }
    }
    serde_json::to_string_pretty(&arrays).expect("plain data has a JSON form") + "\n"
}

impl Arrays<'_> {
    /// What a split has of its sides.
    fn join(&mut self, place: usize, left: usize, right: usize) {
        let samples = &mut self.n_node_samples;
        samples[place] = samples[left].saturating_add(samples[right]);
        let weights = &mut self.weighted_n_node_samples;
        weights[place] = weights[left] + weights[right];
        if weights[place] > 0.0 {
            let share = weights[right] / weights[place];
            self.value[place] = self.value[left] + (self.value[right] - self.value[left]) * share;
        }
    }
}
