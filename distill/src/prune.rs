//! Smaller trees that schedule as well: pruning and selection by simulated performance.
//!
//! The judge is the caller's: it runs a tree in its simulator and returns a paired ratio to a baseline (the teacher, say) over
//! the same workloads, of average JCT or of whatever else is to be little; lower is better.
//!
//! # Source
//! Removing the sibling leaves whose removal costs least in simulation took a 32-leaf tree to 6 leaves and from 1.030 to
//! 1.016 of its teacher's JCT in our own experiment; `docs/distilling.md`. Order of the tries: weakest link (CART).

use pleach_scheduler::tree::{Node, Tree, TreeError, TreePolicy};

use crate::error::Error;

/// A tree and how it was judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The tree.
    pub tree: Tree,
    /// Paired ratio of what the judge compares by, average JCT say; lower is better.
    pub ratio: f64,
}

/// Asks the judge and refuses an answer that is not a finite number.
///
/// # Errors
/// What the judge gives, or [`Error::Judgement`].
pub fn judged<E>(
    tree: Tree,
    judge: &mut dyn FnMut(&TreePolicy) -> Result<f64, E>,
) -> Result<Judged, Error<E>> {
    let policy = TreePolicy::new(tree);
    let ratio = judge(&policy).map_err(Error::Caller)?;
    if !ratio.is_finite() {
        return Err(Error::Judgement {
            leaves: policy.tree().num_leaves(),
            ratio,
        });
    }
    Ok(Judged {
        tree: policy.tree().clone(),
        ratio,
    })
}

/// The smallest tree whose ratio is within `tolerance` (0.01 = 1 %) of the best; among equally small ones the better,
/// then the first. None if there is none at all.
#[must_use]
pub(crate) fn smallest_good(judged: &[(usize, f64)], tolerance: f64) -> Option<usize> {
    let best = judged
        .iter()
        .map(|(_, ratio)| *ratio)
        .fold(f64::INFINITY, f64::min);
    let bound = best + best.abs() * tolerance;
    let mut chosen: Option<usize> = None;
    for (index, (leaves, ratio)) in judged.iter().enumerate() {
        let better = chosen.is_none_or(|other| {
            let (other_leaves, other_ratio) = judged[other];
            (*leaves, *ratio) < (other_leaves, other_ratio)
        });
        if *ratio <= bound && better {
            chosen = Some(index);
        }
    }
    chosen
}

/// Splits whose children are both leaves, by what merging them costs on the training data, cheapest first.
#[must_use]
pub(crate) fn weakest_links(tree: &Tree) -> Vec<usize> {
    let nodes = tree.nodes();
    let mut links: Vec<(f64, usize)> = Vec::new();
    for (place, node) in nodes.iter().enumerate() {
        if let Node::Split { left, right, .. } = node
            && let (
                Node::Leaf { score, weight, .. },
                Node::Leaf {
                    score: other,
                    weight: other_weight,
                    ..
                },
            ) = (nodes[*left as usize], nodes[*right as usize])
        {
            let difference = f64::from(score) - f64::from(other);
            let both = weight + other_weight;
            let cost = if both > 0.0 {
                weight * other_weight / both * difference * difference
            } else {
                0.0
            };
            links.push((cost, place));
        }
    }
    links.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    links.into_iter().map(|(_, place)| place).collect()
}

/// The tree without one split: its two leaves become one with the weighted mean of their scores and the lower id.
///
/// # Errors
/// Never for a split from [`weakest_links`] of the same tree.
///
/// # Panics
/// If `place` is not a split with two leaves.
pub fn merged(tree: &Tree, place: usize) -> Result<Tree, TreeError> {
    let nodes = tree.nodes();
    let Node::Split { left, right, .. } = nodes[place] else {
        panic!("node {place} is a leaf");
    };
    let (
        Node::Leaf {
            id,
            score,
            samples,
            weight,
        },
        Node::Leaf {
            id: other_id,
            score: other_score,
            samples: other_samples,
            weight: other_weight,
        },
    ) = (nodes[left as usize], nodes[right as usize])
    else {
        panic!("node {place} has a child that is not a leaf");
    };
    let both = weight + other_weight;
    let share = if both > 0.0 { weight / both } else { 0.5 };
    let mean = f64::from(score) * share + f64::from(other_score) * (1.0 - share);
    // In canonical order the children of such a split follow it directly.
    let mut smaller: Vec<Node> = nodes.to_vec();
    smaller[place] = Node::Leaf {
        id: id.min(other_id),
        score: mean as f32,
        samples: samples + other_samples,
        weight: both,
    };
    smaller.drain(place + 1..place + 3);
    let moved = |child: u32| if child as usize > place { child - 2 } else { child };
    for node in &mut smaller {
        if let Node::Split { left, right, .. } = node {
            *left = moved(*left);
            *right = moved(*right);
        }
    }
    Tree::over(tree.schema(), tree.meta().clone(), &smaller)
}

/// Splits that change no order: both sides always have the same score. Merges them all.
///
/// # Errors
/// Never for a valid tree.
pub(crate) fn without_idle_splits(mut tree: Tree) -> Result<Tree, TreeError> {
    loop {
        let nodes = tree.nodes();
        let idle = weakest_links(&tree).into_iter().find(|place| {
            matches!(nodes[*place], Node::Split { left, right, .. }
                if matches!((nodes[left as usize], nodes[right as usize]),
                    (Node::Leaf { score, .. }, Node::Leaf { score: other, .. }) if score == other))
        });
        match idle {
            Some(place) => tree = merged(&tree, place)?,
            None => return Ok(tree),
        }
    }
}

/// Prunes by simulation: again and again merges the pair of leaves whose merging is judged best, among the `tries`
/// cheapest ones on the training data, down to `leaves_min` leaves. Returns the path, the given tree first.
///
/// Asks the judge at most `tries` times for each leaf less. Stops early where the best merge is judged worse than
/// `bound` times the best ratio so far (1.1 = 10 %), since what is broken by then does not come back.
///
/// # Errors
/// What the judge gives, or [`Error::Judgement`].
pub(crate) fn by_simulation<E>(
    start: Judged,
    leaves_min: usize,
    tries: usize,
    bound: f64,
    judge: &mut dyn FnMut(&TreePolicy) -> Result<f64, E>,
) -> Result<Vec<Judged>, Error<E>> {
    let mut best_ratio = start.ratio;
    let mut path = vec![start];
    while let Some(last) = path.last()
        && last.tree.num_leaves() > leaves_min.max(1)
    {
        let mut best: Option<Judged> = None;
        for place in weakest_links(&last.tree).into_iter().take(tries.max(1)) {
            let candidate = judged(merged(&last.tree, place)?, judge)?;
            if best.as_ref().is_none_or(|best| candidate.ratio < best.ratio) {
                best = Some(candidate);
            }
        }
        let Some(best) = best else { break };
        if best.ratio > best_ratio * bound {
            break;
        }
        best_ratio = best_ratio.min(best.ratio);
        path.push(best);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trees::{leaf, split, tree as tree_of};
    use std::convert::Infallible;

    /// Four leaves under a balanced tree.
    fn tree(scores: [f32; 4]) -> Tree {
        let [a, b, c, d] = scores;
        let nodes = [
            split(0.5, 1, 4),
            split(0.25, 2, 3),
            leaf(0, a, 1.0),
            leaf(1, b, 3.0),
            split(0.75, 5, 6),
            leaf(2, c, 1.0),
            leaf(3, d, 1.0),
        ];
        tree_of(&nodes)
    }

    #[test]
    fn merging_two_leaves_keeps_their_weighted_mean() {
        let small = merged(&tree([1.0, 5.0, 0.0, 9.0]), 1).unwrap();
        assert_eq!(
            small.nodes(),
            [
                split(0.5, 1, 2),
                Node::Leaf {
                    id: 0,
                    score: 4.0,
                    samples: 8,
                    weight: 4.0
                },
                split(0.75, 3, 4),
                leaf(2, 0.0, 1.0),
                leaf(3, 9.0, 1.0)
            ]
        );
        let smallest = merged(&merged(&small, 2).unwrap(), 0).unwrap();
        assert_eq!(smallest.nodes().len(), 1);
    }

    #[test]
    fn the_weakest_link_is_the_pair_that_differs_least() {
        // 1 * 3 / 4 * 4^2 = 12 against 1 / 2 * 9^2 = 40.5.
        assert_eq!(weakest_links(&tree([1.0, 5.0, 0.0, 9.0])), [1, 4]);
        assert_eq!(weakest_links(&tree([1.0, 15.0, 0.0, 9.0])), [4, 1]);
    }

    #[test]
    fn splits_that_change_nothing_disappear() {
        let small = without_idle_splits(tree([1.0, 1.0, 1.0, 1.0])).unwrap();
        assert_eq!(small.num_leaves(), 1);
        assert_eq!(
            without_idle_splits(tree([1.0, 1.0, 0.0, 9.0]))
                .unwrap()
                .num_leaves(),
            3
        );
    }

    #[test]
    fn pruning_follows_the_judge_and_not_the_training_data() {
        // The judge dislikes losing the pair (0, 9), although by the data the other order would do as well.
        let start = tree([1.0, 15.0, 0.0, 9.0]);
        let mut asked = 0;
        let mut judge = |policy: &TreePolicy| {
            asked += 1;
            let has_nine = policy.tree().tiers().contains(&9.0);
            Ok::<f64, Infallible>(if has_nine { 1.0 } else { 1.5 })
        };
        let start = judged(start, &mut judge).unwrap();
        let path = by_simulation(start, 1, 4, 1.1, &mut judge).unwrap();
        let sizes: Vec<(usize, f64)> = path
            .iter()
            .map(|step| (step.tree.num_leaves(), step.ratio))
            .collect();
        assert_eq!(
            sizes,
            [(4, 1.0), (3, 1.0)],
            "the next merge would be 1.5 and ends it"
        );
        assert_eq!(asked, 1 + 2 + 1);
        assert_eq!(smallest_good(&sizes, 0.01), Some(1));
    }

    #[test]
    fn the_smallest_tree_within_the_tolerance_is_taken() {
        let judged = [(4, 1.02), (8, 0.99), (8, 0.985), (16, 0.98), (32, 1.0)];
        assert_eq!(smallest_good(&judged, 0.01), Some(2));
        assert_eq!(smallest_good(&judged, 0.0), Some(3));
        assert_eq!(smallest_good(&judged, 0.05), Some(0));
        assert_eq!(smallest_good(&[], 0.05), None);
    }

    #[test]
    fn a_judgement_that_is_not_a_number_is_an_error() {
        let text = judged(tree([0.0; 4]), &mut |_| Ok::<f64, Infallible>(f64::NAN))
            .unwrap_err()
            .to_string();
        assert!(text.contains("4 leaves was judged NaN"), "{text}");
    }
}
