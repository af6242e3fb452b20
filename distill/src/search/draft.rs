//! A tree that is being changed: branches in place of a list of nodes, ranks in place of scores.

use std::collections::BTreeMap;

use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeError, TreeMeta};
use serde::{Deserialize, Serialize};

use super::rows::{Condition, Rows};

/// A leaf or a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Branch {
    /// The tier by its rank: 0 is the last.
    Leaf(u32),
    /// Rows whose feature is at most the threshold go left.
    Split {
        /// Index in the joined row.
        feature: u16,
        /// Scaled.
        threshold: f32,
        /// Where the condition holds.
        left: Box<Branch>,
        /// Where it does not.
        right: Box<Branch>,
    },
}

impl Branch {
    /// A split.
    #[must_use]
    pub fn split(feature: u16, threshold: f32, left: Branch, right: Branch) -> Branch {
        Branch::Split {
            feature,
            threshold,
            left: Box::new(left),
            right: Box::new(right),
        }
    }

    /// Leaves and splits.
    #[must_use]
    pub fn num_nodes(&self) -> usize {
        match self {
            Branch::Leaf(_) => 1,
            Branch::Split { left, right, .. } => 1 + left.num_nodes() + right.num_nodes(),
        }
    }

    /// Leaves.
    #[must_use]
    pub fn num_leaves(&self) -> usize {
        self.num_nodes().div_ceil(2)
    }

    /// Depth first, left before right.
    pub(super) fn nodes(&self) -> Vec<&Branch> {
        let mut found = vec![self];
        if let Branch::Split { left, right, .. } = self {
            found.extend(left.nodes());
            found.extend(right.nodes());
        }
        found
    }

    /// The branch at a place in the order of [`Branch::nodes`].
    ///
    /// # Panics
    /// Beyond the last.
    pub(super) fn at_mut(&mut self, place: usize) -> &mut Branch {
        if place == 0 {
            return self;
        }
        let Branch::Split { left, right, .. } = self else {
            panic!("a leaf has no branch {place}");
        };
        let num_left = left.num_nodes();
        if place <= num_left {
            left.at_mut(place - 1)
        } else {
            right.at_mut(place - 1 - num_left)
        }
    }

    /// The path to a place.
    pub(super) fn path(&self, place: usize) -> Vec<Condition> {
        let (mut at, mut branch, mut path) = (place, self, Vec::new());
        while at > 0
            && let Branch::Split {
                feature,
                threshold,
                left,
                right,
            } = branch
        {
            let num_left = left.num_nodes();
            let is_left = at <= num_left;
            path.push((*feature, *threshold, is_left));
            (at, branch) = if is_left {
                (at - 1, left)
            } else {
                (at - 1 - num_left, right)
            };
        }
        path
    }

    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self
            .nodes()
            .into_iter()
            .filter_map(|branch| match branch {
                Branch::Leaf(rank) => Some(*rank),
                Branch::Split { .. } => None,
            })
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    pub(super) fn with_ranks(&self, of: &impl Fn(u32) -> u32) -> Branch {
        match self {
            Branch::Leaf(rank) => Branch::Leaf(of(*rank)),
            Branch::Split {
                feature,
                threshold,
                left,
                right,
            } => Branch::split(*feature, *threshold, left.with_ranks(of), right.with_ranks(of)),
        }
    }

    /// Without splits that change nothing: both sides the same leaf, or one side that none of the rows come to.
    fn simplified(&self, rows: &Rows, reaching: &[u32]) -> Branch {
        let Branch::Split {
            feature,
            threshold,
            left,
            right,
        } = self
        else {
            return self.clone();
        };
        let (to_left, to_right): (Vec<u32>, Vec<u32>) = reaching
            .iter()
            .partition(|row| rows.value(**row, *feature) <= *threshold);
        match (to_left.is_empty(), to_right.is_empty()) {
            (true, false) => return right.simplified(rows, &to_right),
            (false, true) => return left.simplified(rows, &to_left),
            _ => {}
        }
        let (left, right) = (left.simplified(rows, &to_left), right.simplified(rows, &to_right));
        if left == right {
            return left;
        }
        Branch::split(*feature, *threshold, left, right)
    }
}

/// A tree that is being changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The tree.
    pub root: Branch,
    /// Features of a candidate and their weights, in the order of the features.
    pub key: Vec<(u16, f32)>,
    /// Order among equal keys.
    pub tie_key: TieKey,
    /// The candidates that it chooses among.
    pub needs: Needs,
}

impl Draft {
    /// The draft of a tree.
    #[must_use]
    pub fn of(tree: &Tree) -> Draft {
        let tiers = tree.tiers();
        let meta = tree.meta();
        Draft {
            root: branch_of(tree.nodes(), 0, &|score| {
                tiers.iter().filter(|other| **other < score).count() as u32
            }),
            key: meta
                .key_weights
                .iter()
                .map(|term| (term.feature, term.weight))
                .collect(),
            tie_key: meta.tie_key,
            needs: meta.needs,
        }
    }

    /// Leaves, and whether it has a key: trees of one size compete.
    #[must_use]
    pub fn size(&self) -> (usize, bool) {
        (self.root.num_leaves(), !self.key.is_empty())
    }

    /// The one form of drafts that schedule alike: ranks from 0 without gaps, no idle splits, the key in order.
    pub(super) fn settled(mut self, rows: &Rows) -> Draft {
        let all: Vec<u32> = (0..rows.num_rows() as u32).collect();
        let root = self.root.simplified(rows, &all);
        let ranks = root.ranks();
        self.root = root.with_ranks(&|rank| ranks.iter().filter(|other| **other < rank).count() as u32);
        self.key.sort_unstable_by_key(|(feature, _)| *feature);
        self
    }

    /// The tree, with the rows that end in each leaf as its samples.
    ///
    /// # Errors
    /// Where it is no tree that can run.
    pub fn tree(&self, meta: &TreeMeta, rows: &Rows) -> Result<Tree, TreeError> {
        let mut nodes = Vec::with_capacity(self.root.num_nodes());
        let all: Vec<u32> = (0..rows.num_rows() as u32).collect();
        let mut next_leaf = 0;
        put(&self.root, (rows, &all), &mut nodes, &mut next_leaf);
        let meta = TreeMeta {
            name: meta.name.clone(),
            tie_key: self.tie_key,
            key_weights: self
                .key
                .iter()
                .map(|(feature, weight)| KeyWeight {
                    feature: *feature,
                    weight: *weight,
                })
                .collect(),
            needs: self.needs,
            estimates: meta.estimates.clone(),
            trained_by: meta.trained_by.clone(),
        };
        Tree::over(rows.schema(), meta, &nodes)
    }

    /// What nothing is said of beside the draft: a tree of this name.
    #[must_use]
    pub fn plain_meta(&self, name: &str) -> TreeMeta {
        TreeMeta {
            name: name.into(),
            tie_key: self.tie_key,
            key_weights: Vec::new(),
            needs: self.needs,
            estimates: Vec::new(),
            trained_by: BTreeMap::new(),
        }
    }
}

fn branch_of(nodes: &[Node], place: usize, rank: &impl Fn(f32) -> u32) -> Branch {
    match nodes[place] {
        Node::Leaf { score, .. } => Branch::Leaf(rank(score)),
        Node::Split {
            feature,
            threshold,
            left,
            right,
        } => Branch::split(
            feature,
            threshold,
            branch_of(nodes, left as usize, rank),
            branch_of(nodes, right as usize, rank),
        ),
    }
}

/// Appends a branch and what hangs on it; `reached` are the rows that come to it.
fn put(branch: &Branch, reached: (&Rows, &[u32]), nodes: &mut Vec<Node>, next_leaf: &mut u32) {
    let (rows, reaching) = reached;
    match branch {
        Branch::Leaf(rank) => {
            nodes.push(Node::Leaf {
                id: *next_leaf,
                score: *rank as f32,
                samples: reaching.len() as u64,
                weight: reaching.len() as f64,
            });
            *next_leaf += 1;
        }
        Branch::Split {
            feature,
            threshold,
            left,
            right,
        } => {
            let (to_left, to_right): (Vec<u32>, Vec<u32>) = reaching
                .iter()
                .partition(|row| rows.value(**row, *feature) <= *threshold);
            let place = nodes.len();
            nodes.push(Node::Split {
                feature: *feature,
                threshold: *threshold,
                left: place as u32 + 1,
                right: 0,
            });
            put(left, (rows, &to_left), nodes, next_leaf);
            let after = nodes.len() as u32;
            if let Node::Split { right, .. } = &mut nodes[place] {
                *right = after;
            }
            put(right, (rows, &to_right), nodes, next_leaf);
        }
    }
}
