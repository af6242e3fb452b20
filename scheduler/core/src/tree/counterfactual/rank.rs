//! How candidates of one decision stand to each other.

use crate::key_weight::weighted_sum_of_row;
use crate::policy::DecisionPoint;
use crate::tree::{Node, Tree, TreePolicy};

/// How a candidate stands to others of its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rank {
    pub(super) score: f32,
    /// The weighted sum.
    pub(super) sum: f64,
    /// The tie key.
    pub(super) tie: f64,
    pub(super) index: usize,
}

impl Rank {
    pub(super) fn of(policy: &TreePolicy, point: &DecisionPoint<'_>, index: usize) -> Rank {
        let (tree, own) = (policy.tree(), point.observation.row(index));
        let weights = &tree.meta().key_weights;
        let is_about_a_job = point.candidates.get(index).is_some_and(|row| row.job.is_some());
        let row = policy.joined_row(point, index);
        Rank {
            score: score_at(tree, tree.walk(&row)).0,
            sum: if is_about_a_job || weights.is_empty() {
                weighted_sum_of_row(weights, own)
            } else {
                f64::INFINITY
            },
            tie: tree.meta().tie_key.of(point.cluster, point.candidates, index),
            index,
        }
    }

    /// Whether it is chosen where the two are offered; as [`choice_of`](crate::policy::choice_of).
    pub(super) fn is_before(&self, other: &Rank) -> bool {
        if self.score != other.score {
            return self.score > other.score;
        }
        let (own, others) = ((self.sum, self.tie), (other.sum, other.tie));
        own < others || own == others && self.index < other.index
    }
}

/// Score and id of the leaf at a place.
pub(super) fn score_at(tree: &Tree, place: usize) -> (f32, u32) {
    match tree.nodes()[place] {
        Node::Leaf { score, id, .. } => (score, id),
        Node::Split { .. } => (f32::NEG_INFINITY, 0),
    }
}
