//! Policies: read, checked against this program and this cluster, and replaced as a whole.

use std::path::Path;

use pleach_network::LearnedPolicy;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::tree::Tree;
use pleach_scheduler::{Capabilities, Provenance, TreePolicy, heuristics};

use crate::error::Error;

/// A policy that may decide on this cluster.
pub struct Loaded {
    /// What decides.
    pub policy: Box<dyn Policy>,
    /// The same tree again, which explains; none for networks and heuristics.
    pub tree: Option<TreePolicy>,
    /// Its name, for logs.
    pub name: String,
    /// What an operator should know of it; empty = nothing.
    pub warnings: Vec<String>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Loaded")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Loaded {
    /// A heuristic.
    ///
    /// # Errors
    /// An unknown name.
    pub fn heuristic(name: &str) -> Result<Loaded, Error> {
        Ok(Loaded {
            policy: heuristics::by_name(name)?,
            tree: None,
            name: name.to_owned(),
            warnings: Vec::new(),
        })
    }

    /// A policy by the name of a heuristic, the file of a tree (`.json`) or of a network.
    ///
    /// # Errors
    /// A file that cannot be read, another feature schema, actions that this cluster cannot carry out.
    pub fn of(text: &str, capabilities: Capabilities) -> Result<Loaded, Error> {
        let path = Path::new(text);
        let refuse = |reason: String| Error::Policy {
            path: path.to_owned(),
            reason,
        };
        if heuristics::names().contains(&text) {
            let loaded = Loaded::heuristic(text)?;
            let missing = loaded.policy.needs().actions.difference(capabilities.actions());
            return match missing.iter().next() {
                Some(kind) => Err(refuse(format!(
                    "it wants to choose {kind:?}, which this cluster does not allow; see `preemption`"
                ))),
                None => Ok(loaded),
            };
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            let tree = Tree::load(path).map_err(|error| refuse(error.to_string()))?;
            return Loaded::tree(text, tree, capabilities);
        }
        let network = LearnedPolicy::load(path).map_err(|error| refuse(error.to_string()))?;
        let name = path
            .file_name()
            .map_or_else(|| text.to_owned(), |name| name.to_string_lossy().into_owned());
        let missing = network.needs().actions.difference(capabilities.actions());
        let warnings = missing
            .iter()
            .map(|kind| format!("it may choose {kind:?}, which is not offered here"));
        Ok(Loaded {
            warnings: warnings.collect(),
            policy: Box::new(network),
            tree: None,
            name,
        })
    }

    /// A tree.
    ///
    /// # Errors
    /// Actions that this cluster cannot carry out.
    pub fn tree(shown: &str, tree: Tree, capabilities: Capabilities) -> Result<Loaded, Error> {
        tree.check_against(shown, capabilities)
            .map_err(|error| Error::Policy {
                path: shown.into(),
                reason: error.to_string(),
            })?;
        let trained_with = &tree.meta().estimates;
        let mut warnings = Vec::new();
        if !trained_with.is_empty() && !trained_with.contains(&Provenance::UserLimit) {
            warnings.push(format!(
                "it was trained with estimates of the kind {trained_with:?}; here only time limits are known (UserLimit)"
            ));
        }
        let name = tree.meta().name.clone();
        let tree = TreePolicy::new(tree);
        Ok(Loaded {
            policy: Box::new(tree.clone()),
            tree: Some(tree),
            name,
            warnings,
        })
    }
}
