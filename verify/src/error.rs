//! What cannot be checked at all.

use thiserror::Error as ThisError;

/// A file or a record that cannot be checked.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A list of jobs that cannot be read.
    #[error(transparent)]
    Table(#[from] pleach_tables::Error),
    /// A description of the cluster that is none.
    #[error("cluster: {0}")]
    Cluster(String),
    /// A record that is not of this cluster and these jobs.
    #[error("{what} `{name}` of the record is not known: {allowed}; {fix}")]
    Unknown {
        /// Job or node.
        what: &'static str,
        /// Its name.
        name: String,
        /// What is known.
        allowed: String,
        /// How to mend it.
        fix: &'static str,
    },
}
