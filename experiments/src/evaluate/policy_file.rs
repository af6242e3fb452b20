//! A policy in a file: a checkpoint, a tree or the formula of an index, told apart by what is in it.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use pleach_network::LearnedPolicy;
use pleach_scheduler::tree::{MAX_BYTES, Tree, TreeError};

use crate::error::Error;

/// What to do about a policy of another version.
const MAKE_ANEW: &str = "Make it anew with this version: pleach train, pleach distill.";
/// What to do about a tree that somebody wrote in.
const MEND_IT: &str = "Mend it there: docs/policy-file.md, Editing by hand.";

/// What a file holds.
pub(super) enum PolicyFile {
    /// The formula of an index, as its planner takes it.
    Formula(serde_json::Value),
    Tree(Box<Tree>),
    Network(Box<LearnedPolicy>),
}

impl PolicyFile {
    /// Tells a policy file from a checkpoint by its first byte that is not blank.
    pub(super) fn open(path: &Path) -> Result<PolicyFile, Error> {
        let first = first_byte(path).map_err(|source| Error::io("read", path, source))?;
        let refused = |reason: String, hint: &str| Error::Contract {
            what: format!("policy file {}", path.display()),
            expected: "a checkpoint or a tree of this version".into(),
            found: reason,
            hint: hint.into(),
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
            if let Some(formula) = formula_in(path) {
                return Ok(PolicyFile::Formula(formula));
            }
            let tree = Tree::load(path).map_err(refused_tree)?;
            return Ok(PolicyFile::Tree(Box::new(tree)));
        }
        let policy = LearnedPolicy::load(path).map_err(|error| refused(error.to_string(), MAKE_ANEW))?;
        Ok(PolicyFile::Network(Box::new(policy)))
    }
}

/// What a file holds if it is the formula of an index: an object with weights, which no tree has.
fn formula_in(path: &Path) -> Option<serde_json::Value> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    value.get("weights").is_some().then_some(value)
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
    use crate::evaluate::policy_spec::PolicySpec;

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
            let error = PolicySpec::open(place).unwrap_err().to_string();
            assert!(
                error.contains("does not begin with PLEACHNW or PLEACHCK"),
                "{error}"
            );
        }
    }
}
