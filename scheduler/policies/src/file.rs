//! A policy in a file: a checkpoint, a tree, a formula or that of an index, recognised by what is in it.

use pleach_scheduler::Problem;
use pleach_scheduler::formula::ScoreFormula;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use pleach_dealing::{Formula, ScoredOrder, deal_schema};
use pleach_network::{LearnedPolicy, NetworkScorer, ONNX_FIRST_BYTE, TrainedNetwork};
use pleach_scheduler::tree::{MAX_BYTES, Tree, TreeError};

/// What to do about a policy of another version.
const MAKE_ANEW: &str = "Make it anew with this version: pleach train, pleach distill.";
/// What to do about a network of another program.
const EXPORT_ANEW: &str = "Export it anew: docs/learning.md, A network of another program.";
/// What to do about a file of another kind.
const NO_POLICY: &str = "Lists of jobs are for --workload, settings for --config or --policy-config.";
/// What to do about a tree that was edited by hand.
const MEND_IT: &str = "Mend it there: docs/policy-file.md, Editing by hand.";

const MEND_FORMULA: &str = "Mend it there: docs/formulas.md.";

/// What a file holds.
pub(crate) enum PolicyFile {
    /// The formula of an index, as its planner takes it.
    Index(serde_json::Value),
    Formula(Box<ScoreFormula>),
    Tree(Box<Tree>),
    Network(Box<LearnedPolicy>),
    /// What scores the rows of a deal.
    Deal(Learned),
}

/// What was learned over the rows of a deal.
#[derive(Clone, Debug)]
pub(crate) enum Learned {
    Tree(Box<Tree>),
    Network(Box<NetworkScorer>),
}

impl Learned {
    /// A fresh order.
    ///
    /// # Errors
    /// Not in practice: what was opened is over these rows.
    pub(crate) fn order(&self) -> Result<ScoredOrder, Problem> {
        match self {
            Learned::Tree(tree) => ScoredOrder::tree(tree),
            Learned::Network(scorer) => ScoredOrder::new(scorer.clone()),
        }
    }
}

impl PolicyFile {
    /// Tells a policy file from a checkpoint by its first byte that is not blank.
    pub(crate) fn open(path: &Path) -> Result<PolicyFile, Problem> {
        let first = first_byte(path).map_err(Problem::unread(path))?;
        let refused = |reason: String, hint: &str| {
            Problem::contract(
                format!("policy file {}", path.display()),
                "a checkpoint, a tree or a formula of this version",
                reason,
                hint,
            )
        };
        let refused_tree = |error: TreeError| {
            let is_mendable = matches!(
                error,
                TreeError::Node { .. }
                    | TreeError::Value { .. }
                    | TreeError::Json(_)
                    | TreeError::NumNodes { .. }
            );
            refused(error.to_string(), if is_mendable { MEND_IT } else { MAKE_ANEW })
        };
        if first == Some(b'{') {
            if Formula::is_in(path).unwrap_or(false) {
                return Ok(PolicyFile::Index(Formula::value_in(path)?));
            }
            if let Some(found) = ScoreFormula::load(path).map_err(refused_tree)? {
                let found = found.map_err(|error| refused(error.to_string(), MEND_FORMULA))?;
                return Ok(PolicyFile::Formula(Box::new(found)));
            }
            let mut text = String::new();
            let file = File::open(path).map_err(Problem::unread(path))?;
            file.take(MAX_BYTES)
                .read_to_string(&mut text)
                .map_err(Problem::unread(path))?;
            if Tree::rows_of(&text) == deal_schema().name {
                let tree = Tree::from_json_over(deal_schema(), &text).map_err(refused_tree)?;
                return Ok(PolicyFile::Deal(Learned::Tree(Box::new(tree))));
            }
            let tree = Tree::load(path).map_err(refused_tree)?;
            return Ok(PolicyFile::Tree(Box::new(tree)));
        }
        let opened = TrainedNetwork::load(path).and_then(|network| {
            Ok(match network.contract.rows == deal_schema().name {
                true => PolicyFile::Deal(Learned::Network(Box::new(NetworkScorer::over(
                    deal_schema(),
                    &network,
                )?))),
                false => PolicyFile::Network(Box::new(LearnedPolicy::from_network(&network)?)),
            })
        });
        opened.map_err(|error| match first {
            Some(ONNX_FIRST_BYTE) => Problem::contract(
                format!("ONNX model {}", path.display()),
                "operators and numbers that are understood here",
                error,
                EXPORT_ANEW,
            ),
            // What is text is no network of another version.
            Some(byte) if byte.is_ascii_graphic() && byte != b'P' => {
                refused(format!("text, and no policy ({error})"), NO_POLICY)
            }
            _ => refused(error.to_string(), MAKE_ANEW),
        })
    }
}

/// The first byte of a file that is not blank; none where there is none in what a policy file may hold.
fn first_byte(path: &Path) -> std::io::Result<Option<u8>> {
    let start = BufReader::new(File::open(path)?).take(MAX_BYTES);
    for byte in start.bytes() {
        let byte = byte?;
        if !byte.is_ascii_whitespace() {
            return Ok(Some(byte));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Door;

    #[test]
    fn a_formula_with_a_key_twice_or_without_weights_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("formula.json");
        for (text, words) in [
            (
                r#"{"version": 1, "weights": {"rest": 1.0}, "weights": {}}"#,
                "`weights` stands twice",
            ),
            (
                r#"{"version": 1, "weights": {"rest": 1.0, "gang": 2.0, "rest": -1.0}}"#,
                "`rest` stands twice",
            ),
            (r#"{"version": 1, "weights": {}}"#, "weights = none"),
            (r#"{"version": 1, "weights": {"rest": 0.0}}"#, "weights = none"),
        ] {
            std::fs::write(&file, text).unwrap();
            let refused = Door::CLUSTER.open(file.to_str().unwrap()).unwrap_err();
            assert!(refused.to_string().contains(words), "{text}: {refused}");
        }
        std::fs::write(&file, r#"{"version": 1, "weights": {"rest": 1.0}}"#).unwrap();
        assert_eq!(
            Door::CLUSTER.open(file.to_str().unwrap()).unwrap()[0].name(),
            "index"
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_policy_without_an_end_is_refused_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let sparse = folder.path().join("network.ckpt");
        File::create(&sparse).unwrap().set_len(5 << 30).unwrap();
        for place in [
            "/dev/zero",
            sparse.to_str().unwrap(),
            folder.path().to_str().unwrap(),
        ] {
            assert_eq!(first_byte(&sparse).unwrap(), Some(0));
            let error = Door::CLUSTER.open(place).unwrap_err().to_string();
            assert!(
                error.contains("does not begin with PLEACHNW or PLEACHCK"),
                "{error}"
            );
        }
    }
}
