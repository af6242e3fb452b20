//! The deployable policy: one decision tree that scores every candidate into a *tier*.
//!
//! The tree reads the joined row of a candidate (its own features, then the global ones) and ends in a leaf; the leaf's
//! score is the candidate's score, equal scores form a tier. Inside a tier the least weighted sum of up to four features comes
//! first, where the tree has weights, and then the declared [`TieKey`] decides.
//! A [`Tree`] is valid by construction: [`Tree::new`] and the reader refuse everything else, and nodes are kept in one
//! canonical order, so the same tree always has the same bytes.
//!
//! # What is deliberately not here
//! No learning (that is `pleach-distill`) and no other kinds of models: what is deployed is what one can read.
//!
//! # Source
//! One tree over candidates, invariant to their number and order, rather than a classifier over slots: Hu et al. on
//! Decima (arXiv 2405.19131) distil a scheduler into such scores; the tiers with a declared key inside are ours.

mod aside;
#[cfg(test)]
mod aside_tests;
mod boxes;
#[cfg(test)]
mod boxes_tests;
mod bundle;
mod certificate;
mod certify;
pub(crate) mod check;
mod contrast;
mod counterfactual;
mod error;
pub(crate) mod explain;
mod export;
pub(crate) mod file;
#[cfg(test)]
mod floor_tests;
mod golden;
#[cfg(test)]
mod guard_tests;
mod key_text;
pub(crate) mod needs;
mod node;
mod outline;
mod passed_over;
mod reach;
pub(crate) mod runtime;
pub(crate) mod text;
#[cfg(test)]
mod toy_tests;
mod visits;

use std::collections::BTreeMap;

pub use bundle::{
    BUNDLE_FORMAT, BUNDLE_VERSION, BUNDLED_TREE, Bundle, BundleError, BundledFile, MANIFEST_FILE, Manifest,
};
pub use certificate::{Certificate, Property, Verdict, Witness};
pub use certify::RowSet;
pub use contrast::{Contrast, Parting};
pub use counterfactual::{Change, Counterfactual};
pub use error::{KeyError, NodeError, TreeError};
pub use explain::{Condition, Explanation, KeyTerm};
pub use export::Export;
pub use file::{FORMAT, MAX_BYTES};
pub use golden::{GOLDEN_ROWS, GOLDEN_RULE, Golden};
pub use key_text::key_in_words;
pub(crate) use node::MAX_NODES;
pub use node::{MAX_DEPTH, Node};
pub use outline::{Kind, Outline, OutlineLeaf, OutlineNode, Rule};
pub use passed_over::{Alternative, PassedOver};
pub use runtime::{FlatTree, TreePolicy};
pub use text::{count, quantity};
pub use visits::{DriftWindow, PSI_LIMIT_DEFAULT, Visits, WINDOW_DECISIONS, WINDOW_DEFAULT, psi};

use crate::cluster::Capabilities;
use crate::estimate::Provenance;
use crate::features::{Feature, FeatureSchema};
use crate::guards::Guards;
use crate::key_weight::KeyWeight;
use crate::policy::{Needs, TieKey};

/// What a policy file says beside its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeMeta {
    /// Name for tables and logs; 1 to 200 bytes, no control characters.
    pub name: String,
    /// Order inside a tier, among equal weighted sums.
    pub tie_key: TieKey,
    /// Weights of features of a candidate, whose least sum comes first inside a tier; at most
    /// [`MAX_KEY_WEIGHTS`](crate::key_weight::MAX_KEY_WEIGHTS), none = the tie key alone. Kept in the order of the features.
    pub key_weights: Vec<KeyWeight>,
    /// The candidates that it chooses among; it always reads features.
    pub needs: Needs,
    /// Where the estimates came from that it was trained with; empty = not known.
    pub estimates: Vec<Provenance>,
    /// What made it: command, configuration, versions. Free; not read by the program.
    pub trained_by: BTreeMap<String, serde_json::Value>,
}

/// A valid tree in canonical order: depth first, left before right.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The columns of its rows.
    schema: &'static FeatureSchema,
    meta: TreeMeta,
    nodes: Vec<Node>,
    guards: Guards,
    certificates: Vec<Certificate>,
    /// Name of a heuristic.
    fallback: Option<String>,
    gpu_types_max: Option<u32>,
    golden: Option<Golden>,
    visits: Option<Visits>,
}

impl Tree {
    /// Whether a cluster can do what the tree may choose. Sizes, shares of cores and waiting for a type need nothing of it.
    ///
    /// # Errors
    /// [`TreeError::Capability`] with the first capability that is missing; `policy` names the tree.
    pub fn check_against(&self, policy: &str, capabilities: Capabilities) -> Result<(), TreeError> {
        needs::check_against(&self.meta.needs, policy, capabilities)
    }

    /// Checks the parts and brings the nodes into canonical order. Node 0 is the root.
    ///
    /// # Errors
    /// The first thing that is wrong, see [`TreeError`] and [`NodeError`].
    pub fn new(meta: TreeMeta, nodes: &[Node]) -> Result<Tree, TreeError> {
        Tree::over(FeatureSchema::current(), meta, nodes)
    }

    /// The same over the columns of another schema than a pass's.
    ///
    /// # Errors
    /// As [`Tree::new`].
    pub fn over(
        schema: &'static FeatureSchema,
        mut meta: TreeMeta,
        nodes: &[Node],
    ) -> Result<Tree, TreeError> {
        check::name(&meta.name)?;
        needs::check(&meta.needs)?;
        meta.needs.observation = true;
        meta.key_weights = check::key_weights(schema, &meta.key_weights)?;
        meta.estimates.sort_unstable();
        meta.estimates.dedup();
        for (node, found) in nodes.iter().enumerate() {
            check::node(schema, found).map_err(|reason| TreeError::Node { node, reason })?;
        }
        Ok(Tree {
            schema,
            meta,
            nodes: check::canonical(nodes)?,
            guards: Guards::NONE,
            certificates: Vec::new(),
            fallback: None,
            gpu_types_max: None,
            golden: None,
            visits: None,
        })
    }

    /// The columns of its rows.
    #[must_use]
    pub fn schema(&self) -> &'static FeatureSchema {
        self.schema
    }

    /// The column with a number. Trees are valid, so one that they read is there.
    pub(crate) fn feature(&self, number: u16) -> &'static Feature {
        &self.schema.features[usize::from(number)]
    }

    /// Numbers of the columns that it reads, those of its key included, in their order.
    #[must_use]
    pub fn reads(&self) -> Vec<u16> {
        let splits = self.nodes.iter().filter_map(|node| match node {
            Node::Split { feature, .. } => Some(*feature),
            Node::Leaf { .. } => None,
        });
        let mut numbers: Vec<u16> = splits
            .chain(self.meta.key_weights.iter().map(|term| term.feature))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Length of the joined rows that it needs: the first view's, or as far as the last column that it reads.
    #[must_use]
    pub fn width(&self) -> usize {
        let last = self.reads().last().copied().unwrap_or(0);
        self.schema.width_to(last.into())
    }

    /// What is said beside the nodes.
    #[must_use]
    pub fn meta(&self) -> &TreeMeta {
        &self.meta
    }

    /// What is known of it for certain, as far as its file says.
    #[must_use]
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// The same tree with these certificates, which its file then holds and every reader checks.
    #[must_use]
    pub fn with_certificates(mut self, certificates: Vec<Certificate>) -> Tree {
        self.certificates = certificates;
        self
    }

    /// What it may not do, whatever its leaves say.
    #[must_use]
    pub fn guards(&self) -> Guards {
        self.guards
    }

    /// The same tree under these guards.
    ///
    /// # Errors
    /// A guard that is out of range, or that asks for what the tree does not choose among.
    pub fn with_guards(mut self, guards: Guards) -> Result<Tree, TreeError> {
        check::guards(guards, &self.meta.needs)?;
        if guards != self.guards {
            // It schedules otherwise from now on, and meets other candidates.
            self.visits = None;
        }
        self.guards = guards;
        Ok(self)
    }

    /// The heuristic that should decide where the tree cannot, as far as its file says.
    #[must_use]
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// The same tree with this fallback.
    ///
    /// # Errors
    /// A name that is no heuristic's; none for a tree that leaves some clusters to it.
    pub fn with_fallback(mut self, fallback: Option<String>) -> Result<Tree, TreeError> {
        if let Some(name) = &fallback {
            check::fallback(name)?;
        }
        if let Some(most) = self.gpu_types_max {
            check::gpu_types_max(most, fallback.as_deref())?;
        }
        self.fallback = fallback;
        Ok(self)
    }

    /// The same tree with golden vectors, which its file then holds and every reader checks.
    #[must_use]
    pub fn with_golden(mut self) -> Tree {
        self.golden = Some(self.golden());
        self
    }

    /// How often candidates ended in each leaf where it was judged, as far as its file says.
    #[must_use]
    pub fn visits(&self) -> Option<&Visits> {
        self.visits.as_ref()
    }

    /// The same tree with this histogram, which its file then holds.
    ///
    /// # Errors
    /// A histogram that is not one of this tree's leaves, or of too few decisions.
    pub fn with_visits(mut self, visits: Visits) -> Result<Tree, TreeError> {
        self.check_visits(&visits)?;
        self.visits = Some(visits);
        Ok(self)
    }

    /// Whether its file holds anything for its deployment: fallback, golden vectors or visits.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.fallback.is_some() || self.golden.is_some() || self.visits.is_some()
    }

    /// All nodes; the root is first, every child comes after its parent.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of leaves.
    #[must_use]
    pub fn num_leaves(&self) -> usize {
        self.nodes.len().div_ceil(2)
    }

    /// Splits on the longest path.
    #[must_use]
    pub fn depth(&self) -> usize {
        let mut depths = vec![0; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            if let Node::Split { left, right, .. } = node {
                depths[*left as usize] = depths[place] + 1;
                depths[*right as usize] = depths[place] + 1;
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Names of the features that it reads, those of its key included, in the order of the joined row.
    #[must_use]
    pub fn features(&self) -> Vec<&'static str> {
        let numbers = self.reads().into_iter();
        numbers.map(|number| self.feature(number).name).collect()
    }

    /// Scores of the tiers, best first: the distinct scores of the leaves.
    #[must_use]
    pub fn tiers(&self) -> Vec<f32> {
        let mut scores: Vec<f32> = self
            .nodes
            .iter()
            .filter_map(|node| match node {
                Node::Leaf { score, .. } => Some(*score),
                Node::Split { .. } => None,
            })
            .collect();
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        scores.dedup();
        scores
    }

    /// Place of the leaf where a joined row ends: the slow and obvious walk.
    ///
    /// # Panics
    /// If the row is shorter than the joined row of the schema.
    #[must_use]
    pub fn walk(&self, row: &[f32]) -> usize {
        let mut place = 0;
        while let Node::Split {
            feature,
            threshold,
            left,
            right,
        } = self.nodes[place]
        {
            place = if row[usize::from(feature)] <= threshold {
                left as usize
            } else {
                right as usize
            };
        }
        place
    }
}

#[cfg(test)]
pub(crate) mod tests {
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
}
