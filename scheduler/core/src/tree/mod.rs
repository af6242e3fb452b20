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
#[cfg(test)]
pub(crate) mod tests;
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
pub use text::{count, quantity, span};
pub use visits::{DriftWindow, PSI_LIMIT_DEFAULT, Visits, WINDOW_DECISIONS, WINDOW_DEFAULT, psi};

use crate::cluster::Capabilities;
use crate::estimate::Provenance;
use crate::features::{Feature, FeatureSchema};
use crate::guards::Guards;
use crate::key_weight::KeyWeight;
use crate::policy::{Needs, TieKey};
use crate::wide_gangs::WideGangs;

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
    wide_gangs: Option<WideGangs>,
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
            wide_gangs: None,
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

    /// Whether its file holds anything for its deployment: fallback, what decides wide gangs, golden vectors or visits.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.fallback.is_some() || self.wide_gangs.is_some() || self.golden.is_some() || self.visits.is_some()
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
