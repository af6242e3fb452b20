//! What each leaf and each feature of a tree is worth: the tree without it on the same lists.

use std::fmt::Write as _;

use pleach_distill::without_leaf;
use pleach_env::{EnvConfig, Seed};
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::tree::{Node, Tree, TreePolicy};
use serde::Serialize;

use super::shuffled::Shuffled;
use super::side_by_side::{PartOver, side_by_side};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::judge::{Kind, REPORTED, in_words};
use crate::progress::Watcher;

/// Lists as long as the task's, four times as long, and a low load.
const KINDS: [Kind; 3] = [REPORTED[0], REPORTED[2], REPORTED[3]];

/// The tree without one thing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AblationRow {
    /// What it goes without: `leaf 3`, `wait_s`.
    pub without: String,
    /// Share of the rows that ended in this leaf in training; none for features, and where the file does not say.
    pub coverage: Option<f64>,
    /// Part by part, over the whole tree.
    pub parts: Vec<PartOver>,
}

/// What everything in a tree is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AblationReport {
    /// Version of this form.
    pub schema: u32,
    /// Lists of each part; half as many of the longer ones.
    pub num_lists: usize,
    /// Leaves in the order of the tree, then features in the order of the schema.
    pub rows: Vec<AblationRow>,
}

/// Runs the tree, the tree without each of its leaves, and with each of its features shuffled, on the same lists.
///
/// # Errors
/// A list that cannot be drawn, a run that fails.
pub fn ablate(
    env: &EnvConfig,
    tree: &Tree,
    num_lists: usize,
    seed: u64,
    watcher: &Watcher,
) -> Result<AblationReport, Error> {
    let mut policies = vec![PolicySpec::tree("whole", tree.clone())];
    let mut rows = Vec::new();
    for (without, coverage, smaller) in leaves(tree)? {
        policies.push(PolicySpec::tree(&without, smaller));
        rows.push((without, coverage));
    }
    let schema = FeatureSchema::current();
    for feature in features(tree) {
        let name = schema.joined_name(feature);
        let policy = TreePolicy::new(tree.clone());
        let draw = Seed(seed).child("distill/ablate", 1);
        let make = move || -> Box<dyn pleach_scheduler::policy::Policy> {
            Box::new(Shuffled::new(policy.clone(), feature, draw))
        };
        policies.push(PolicySpec::made(name, make));
        rows.push((name.to_owned(), None));
    }
    let drawn = ((seed, "distill/ablate"), num_lists);
    let parts = side_by_side(env, &KINDS, drawn, &policies, watcher)?;
    let rows = rows.into_iter().zip(parts.into_iter().skip(1));
    Ok(AblationReport {
        schema: 1,
        num_lists,
        rows: rows
            .map(|((without, coverage), parts)| AblationRow {
                without,
                coverage,
                parts,
            })
            .collect(),
    })
}

/// Each leaf, its share of the rows, and the tree without it. None of a tree of one leaf.
fn leaves(tree: &Tree) -> Result<Vec<(String, Option<f64>, Tree)>, Error> {
    let weight = |node: &Node| match node {
        Node::Leaf { samples, .. } => *samples as f64,
        Node::Split { .. } => 0.0,
    };
    let total: f64 = tree.nodes().iter().map(weight).sum();
    let mut found = Vec::new();
    for (place, node) in tree.nodes().iter().enumerate() {
        let Node::Leaf { id, .. } = node else { continue };
        let smaller = without_leaf(tree, place).map_err(|error| Error::Failed(error.to_string()))?;
        let coverage = (total > 0.0).then(|| weight(node) / total);
        found.extend(smaller.map(|smaller| (format!("leaf {id}"), coverage, smaller)));
    }
    Ok(found)
}

/// Places in the joined row of what its splits and its key read.
fn features(tree: &Tree) -> Vec<usize> {
    let splits = tree.nodes().iter().filter_map(|node| match node {
        Node::Split { feature, .. } => Some(usize::from(*feature)),
        Node::Leaf { .. } => None,
    });
    let key = tree
        .meta()
        .key_weights
        .iter()
        .map(|term| usize::from(term.feature));
    let mut found: Vec<usize> = splits.chain(key).collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl AblationReport {
    /// A table, as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from("| without | share of rows |");
        let parts = self.rows.first().map_or(&[][..], |row| &row.parts);
        for part in parts {
            let _ = write!(text, " {} |", part.part);
        }
        text.push_str("\n|---|---:|");
        text.push_str(&"---:|".repeat(parts.len()));
        text.push('\n');
        for row in &self.rows {
            let share = row
                .coverage
                .map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share));
            let _ = write!(text, "| {} | {share} |", row.without);
            for part in &row.parts {
                let words = part.jct.as_ref().map_or_else(|| "no figure".into(), in_words);
                let _ = write!(text, " {words} |");
            }
            text.push('\n');
        }
        text.push_str(
            "\nAverage JCT over that of the whole tree, paired. A leaf is left out: the other side of its split takes its place. A \
             feature is shuffled: among the candidates of a decision, or with earlier decisions if it is one of the cluster.\n",
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;

    fn report(name: &str, tree: &Tree) -> AblationReport {
        let env = env_of(name, Some(100), Some(1.5)).unwrap();
        ablate(&env, tree, 4, 3, &Watcher::silent()).unwrap()
    }

    fn reference(name: &str) -> Tree {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        Tree::load(format!("{root}/tests/trees/{name}-tree.json").as_ref()).unwrap()
    }

    #[test]
    fn every_leaf_and_every_feature_has_a_row_and_what_decides_costs() {
        let tree = reference("PhillyGang-v1");
        let found = report("Pleach/PhillyGang-v1", &tree);
        let names: Vec<&str> = found.rows.iter().map(|row| row.without.as_str()).collect();
        let leaves = names.iter().filter(|name| name.starts_with("leaf ")).count();
        assert_eq!(leaves, tree.num_leaves());
        assert_eq!(
            names[leaves..],
            ["is_hold", "wait_ratio", "speed_ratio"],
            "{names:?}"
        );
        let shares: f64 = found.rows.iter().filter_map(|row| row.coverage).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        let changed = |row: &AblationRow| row.parts[0].jct.as_ref().unwrap().mean != 1.0;
        assert!(found.rows.iter().any(changed));
        // `is_hold` is the same for all candidates about jobs, so shuffling it among them changes nothing.
        assert!(!changed(&found.rows[leaves]));
        assert_eq!(report("Pleach/PhillyGang-v1", &tree), found);
        assert!(
            found.markdown().contains("| speed_ratio |  |"),
            "{}",
            found.markdown()
        );
    }

    #[test]
    fn a_key_that_is_shuffled_decides_otherwise_and_one_that_is_not_as_before() {
        let tree = reference("GavelShare-v1");
        let key = tree.meta().key_weights[0];
        assert!(features(&tree).contains(&usize::from(key.feature)));
        let found = report("Pleach/GavelShare-v1", &tree);
        let name = FeatureSchema::current().joined_name(key.feature.into());
        let row = found.rows.iter().find(|row| row.without == name).unwrap();
        assert_ne!(row.parts[0].jct.as_ref().unwrap().mean, 1.0);
    }
}
