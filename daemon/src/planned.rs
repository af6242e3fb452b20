//! One decision of a round, with what became of it.

use pleach_scheduler::{Decision, Estimate, ExternalId, Provenance};
use serde::{Deserialize, Serialize};

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// The record of the scheduler.
    pub decision: Decision,
    /// Names of the nodes of its placement, in the order of its slices.
    pub nodes: Vec<String>,
    /// What was believed of the job's run time, s, and where that came from; none in logs of before it was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_s: Option<Estimate>,
    /// Why, in words; empty where a network or a heuristic decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What became of it; empty in shadow mode.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// The nodes of it that would not take the job; empty: it was sent, or it is not the nodes' fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_by: Vec<String>,
}

impl Planned {
    /// The job.
    #[must_use]
    pub fn job(&self) -> ExternalId {
        self.decision.job
    }

    /// The believed run time in words, with where it comes from; nothing where it was not written down.
    #[must_use]
    pub fn belief(&self) -> String {
        let Some(estimate_s) = self.estimate_s else {
            return String::new();
        };
        let from = match estimate_s.provenance {
            Provenance::UserLimit => "its time limit",
            Provenance::Predicted => "predicted from ended jobs",
            Provenance::Profile => "measured beforehand",
            Provenance::Oracle => "known",
        };
        format!("believed run time {:.0} s: {from}\n", estimate_s.value)
    }
}
