//! What a round keeps out of its tables: jobs that wait (`allowances.rs` says which).

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;

/// What is kept out of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Jobs that wait, and why.
    pub jobs: BTreeMap<ExternalId, String>,
    /// Attempts at the round before the present one.
    pub num_attempts: u32,
}
