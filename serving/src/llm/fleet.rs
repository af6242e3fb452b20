//! A fleet: replicas of one model, the gateways in front of them, and what users expect.

use pleach_scheduler::Problem;
use serde::{Deserialize, Serialize};

use crate::llm::outcome::Targets;
use crate::llm::step_time::Pace;
use crate::settings::within;

/// Most replicas, and most gateways.
const REPLICAS_MAX: usize = 4_096;
/// Oldest facts, s.
const SCRAPE_S_MAX: f64 = 3_600.0;

/// Replicas of one model, the gateways in front of them, and what users expect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Of each replica.
    pub pace: Pace,
    /// 1 to 4,096.
    pub num_replicas: usize,
    /// Gateways that know of their own requests only, 1 to 4,096. A conversation stays at one.
    pub num_gateways: usize,
    /// Time from one look of a gateway at all replicas to its next, s; 0: it looks at each request.
    pub scrape_s: f64,
    /// What users expect.
    pub targets: Targets,
    /// Whether a router may refuse a request.
    pub may_refuse: bool,
}

impl Fleet {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A number that is out of its range.
    pub fn check(&self) -> Result<(), Problem> {
        within("num_replicas", self.num_replicas, 1, REPLICAS_MAX)?;
        within("num_gateways", self.num_gateways, 1, REPLICAS_MAX)?;
        within("scrape_s", self.scrape_s, 0.0, SCRAPE_S_MAX)?;
        for (key, value) in [("ttft_s", self.targets.ttft_s), ("tpot_s", self.targets.tpot_s)] {
            Problem::refuse_if(
                !(value.is_finite() && value > 0.0),
                key,
                value,
                "above 0",
                "Try 0.5.",
            )?;
        }
        Ok(())
    }
}
