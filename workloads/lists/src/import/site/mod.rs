//! A site's own accounting: what `sacct -P`, `sacct --json` or `kubectl get -o json` prints, or any table by a mapping, with a list of
//! its nodes.
//!
//! Rows become runs (`row.rs`), runs become jobs (`merge.rs`), jobs get the GPU types on which they may run and the cluster on
//! which they did (`place.rs`). What is left out or mended is counted by its reason. When jobs began and ended and on which nodes
//! stays with them ([`crate::Observed`]).
//!
//! Refused: files that cannot be read, and tables in which no column says when jobs came, how many GPUs they had or how long they
//! ran. No row is refused.

mod document;
mod guess;
mod kubernetes;
mod kubernetes_gangs;
mod kubernetes_nodes;
mod list;
mod mapping;
mod merge;
mod node_state;
mod nodes;
mod options;
mod place;
mod reason;
mod role;
mod row;
mod sacct_json;
mod seen;
mod table_rows;
mod taken;

pub use super::import_site::{SiteImport, import_site};
pub use guess::{Guess, guess};
pub use mapping::Mapping;
pub use nodes::NodeTable;
pub use options::SiteOptions;
pub use pleach_site::slurm::Fate;
pub use role::Role;

use crate::Outcome;

pub(super) use guess::is_readable;
pub(super) use kubernetes::is_start as is_kubernetes;
pub(super) use list::draft;
pub(super) use sacct_json::is_start;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod kubernetes_gangs_tests;
#[cfg(test)]
mod kubernetes_tests;
#[cfg(test)]
mod nodes_tests;
#[cfg(test)]
mod parquet_tests;
#[cfg(test)]
mod reported_tests;
#[cfg(test)]
mod tests;

impl From<Fate> for Outcome {
    fn from(fate: Fate) -> Outcome {
        match fate {
            Fate::Completed => Outcome::Completed,
            Fate::Failed => Outcome::Failed,
            Fate::Killed | Fate::Requeued => Outcome::Killed,
            Fate::Unknown | Fate::Running | Fate::Waiting => Outcome::Unknown,
        }
    }
}
