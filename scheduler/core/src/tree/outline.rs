//! A tree as parts with their words, for pages that are drawn elsewhere: the same words as in the text.

use super::reach::{Reach, tier_of};
use super::text::condition;
use super::{Node, Tree};
use crate::features::Feature;
use crate::policy::TieKey;

/// A tree in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// One for each node, in the order of [`Tree::nodes`].
    pub nodes: Vec<OutlineNode>,
    /// Paths to the leaves, the best tier first, then by leaf.
    pub rules: Vec<Rule>,
    /// What comes first inside a tier, as a sentence.
    pub key: String,
    /// What its guards say, a sentence or more for each; empty without guards.
    pub guards: Vec<String>,
    /// What each kind of action does and in which tiers it is taken, a sentence or more for each.
    pub actions: Vec<String>,
    /// The kinds of candidates that it chooses among.
    pub kinds: Vec<Kind>,
    /// The features that it reads, those of its key included, with their places in the joined row.
    pub features: Vec<(u16, &'static Feature)>,
}

/// A node in words.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlineNode {
    /// Rows of the training data that came here.
    pub samples: u64,
    /// The condition of a split for its left and its right side; none for a leaf.
    pub sides: Option<[String; 2]>,
    /// What happens in a leaf; none for a split.
    pub leaf: Option<OutlineLeaf>,
}

/// A leaf in words.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlineLeaf {
    /// 1 is taken first.
    pub tier: usize,
    /// Kinds of actions that end here, and whether they wait.
    pub does: String,
    /// Whether *hold* can end here.
    pub holds: bool,
}

/// The path to a leaf.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// 1 is taken first.
    pub tier: usize,
    /// Id of the leaf.
    pub leaf: u32,
    /// Place of the leaf in the list of nodes.
    pub place: usize,
    /// What a candidate meets that comes here, from the root on; empty in a tree of one leaf.
    pub conditions: Vec<String>,
}

/// A kind of candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Scaled values of features that never vary in it, by their places in the joined row.
    pub fixed: Vec<(u16, f32)>,
}

impl Tree {
    /// The tree in words.
    #[must_use]
    pub fn outline(&self) -> Outline {
        let reach = Reach::of(self);
        let reads = self.reads().into_iter();
        let features = reads.map(|number| (number, self.feature(number)));
        Outline {
            nodes: self.outline_nodes(&reach),
            rules: self.rules(),
            key: self.key_sentence(),
            guards: self.guard_lines(),
            actions: reach.lines(self),
            kinds: self.kinds(),
            features: features.collect(),
        }
    }

    fn outline_nodes(&self, reach: &Reach) -> Vec<OutlineNode> {
        let tiers = self.tiers();
        let mut nodes: Vec<OutlineNode> = Vec::with_capacity(self.nodes().len());
        // Children come after their parents, so from the end on they are there already.
        for (place, node) in self.nodes().iter().enumerate().rev() {
            let of = |child: u32| nodes[self.nodes().len() - 1 - child as usize].samples;
            nodes.push(match *node {
                Node::Leaf { score, samples, .. } => {
                    let tier = tier_of(score, &tiers);
                    OutlineNode {
                        samples,
                        sides: None,
                        leaf: Some(OutlineLeaf {
                            tier,
                            does: reach.leaf(place, tier),
                            holds: reach.holds_at(place),
                        }),
                    }
                }
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => OutlineNode {
                    samples: of(left).saturating_add(of(right)),
                    sides: Some(
                        [true, false].map(|holds| condition(self.feature(feature), threshold, holds)),
                    ),
                    leaf: None,
                },
            });
        }
        nodes.reverse();
        nodes
    }

    /// Paths to the leaves, the best tier first, then by leaf.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let tiers = self.tiers();
        let mut rules = Vec::new();
        let mut stack = vec![(0_usize, Vec::<String>::new())];
        while let Some((place, conditions)) = stack.pop() {
            match self.nodes()[place] {
                Node::Leaf { id, score, .. } => rules.push(Rule {
                    tier: tier_of(score, &tiers),
                    leaf: id,
                    place,
                    conditions,
                }),
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    for (child, holds) in [(right, false), (left, true)] {
                        let mut conditions = conditions.clone();
                        conditions.push(condition(self.feature(feature), threshold, holds));
                        stack.push((child as usize, conditions));
                    }
                }
            }
        }
        rules.sort_by_key(|rule| (rule.tier, rule.leaf));
        rules
    }

    /// What comes first inside a tier.
    fn key_sentence(&self) -> String {
        let first = self.key_line().unwrap_or_else(|| {
            let which = match self.meta().tie_key {
                TieKey::Index => "candidate that is offered first",
                TieKey::Arrival => "job that was submitted first",
                TieKey::ShortestEstimate => "job with the shortest believed rest",
                TieKey::SmallestGpuTime => "job with the smallest believed GPU time",
            };
            format!("Inside a tier the {which} comes first.")
        });
        format!("{first} Hold, which is about no job, comes last of its tier.")
    }

    fn kinds(&self) -> Vec<Kind> {
        let reads = self.reads();
        let of = |kind| {
            let fixed = reads.iter().filter_map(|number| {
                let (low, high) = self.feature(*number).range_among(kind);
                (low == high).then_some((*number, low))
            });
            fixed.collect()
        };
        self.kinds_of_rows()
            .map(|kind| Kind {
                name: self.schema().kinds[kind].name,
                fixed: of(kind),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{keyed_tree, leaf, meta, small_tree};
    use super::*;

    #[test]
    fn an_outline_has_the_words_of_the_text_and_counts_what_comes_to_each_node() {
        let outline = small_tree().outline();
        let samples: Vec<u64> = outline.nodes.iter().map(|node| node.samples).collect();
        assert_eq!(samples, [30, 20, 10, 10, 10]);
        assert_eq!(
            outline.nodes[0].sides,
            Some(["is_hold = 0".into(), "is_hold = 1".into()])
        );
        let hold = outline.nodes[4].leaf.clone().unwrap();
        assert_eq!((hold.tier, hold.does.as_str(), hold.holds), (3, "hold", true));
        let rules: Vec<(usize, u32, usize)> = outline
            .rules
            .iter()
            .map(|rule| (rule.tier, rule.leaf, rule.place))
            .collect();
        assert_eq!(rules, [(1, 1, 2), (2, 2, 3), (3, 0, 4)]);
        assert_eq!(
            outline.rules[1].conditions,
            ["is_hold = 0", "gpu_time_gpu_s > 3,600 GPU s"]
        );
        assert_eq!(
            outline.key,
            "Inside a tier the job with the shortest believed rest comes first. \
             Hold, which is about no job, comes last of its tier."
        );
        let names: Vec<&str> = outline.kinds.iter().map(|kind| kind.name).collect();
        assert_eq!(names, ["start", "reserve", "preempt", "hold"]);
        // is_hold and gpu_time_gpu_s: a hold has both fixed, a start the first.
        assert_eq!(outline.kinds[0].fixed, [(0, 0.0)]);
        assert_eq!(outline.kinds[3].fixed, [(0, 1.0), (8, 0.0)]);
        assert!(keyed_tree().outline().key.contains("weighed together"));
        assert_eq!(outline.actions.len(), 4);
    }

    #[test]
    fn a_tree_of_one_leaf_and_numbers_beyond_bounds_have_an_outline() {
        let only = Tree::new(meta(), &[leaf(0, 1.0)]).unwrap().outline();
        assert!(only.rules[0].conditions.is_empty() && only.nodes.len() == 1);
        let mut nodes = small_tree().nodes().to_vec();
        for node in &mut nodes {
            if let Node::Leaf { samples, .. } = node {
                *samples = u64::MAX;
            }
        }
        assert_eq!(
            Tree::new(meta(), &nodes).unwrap().outline().nodes[0].samples,
            u64::MAX
        );
    }
}
