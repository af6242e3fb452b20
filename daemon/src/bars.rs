//! What a round keeps out of its tables: nodes that take nobody, and jobs that wait ([`crate::detour`] says which).

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;

/// What is kept out of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bars {
    /// Nodes that take nobody.
    pub nodes: BTreeSet<String>,
    /// Jobs that wait, and why.
    pub jobs: BTreeMap<ExternalId, String>,
}

impl Bars {
    /// What a reader of a round should know of it; empty where nothing is kept out.
    #[must_use]
    pub fn told(&self) -> String {
        match self.nodes.is_empty() {
            true => String::new(),
            false => {
                let names: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
                format!(
                    "{} take(s) nobody in this round: who would go there was refused there.\n",
                    names.join(",")
                )
            }
        }
    }
}
