//! What a deal hangs on beside the tables: it is written into the log, so that a round can be decided again.

use std::collections::BTreeSet;

use pleach_dealing::Trust;
use pleach_scheduler::ExternalId;
use serde::{Deserialize, Serialize};

/// What a deal hangs on beside the tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Whether running jobs may be stopped; else free GPUs are filled.
    pub moves: bool,
    /// What estimates of run times have been worth.
    pub trust: Trust,
    /// Jobs that the batch system would not stop when it was asked to.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stays: BTreeSet<ExternalId>,
}
