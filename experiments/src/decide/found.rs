//! What a run has found.

use serde::{Deserialize, Serialize};

use super::{Parts, Verdict};
use crate::evaluate::estimate_source::EstimateSource;
use crate::evaluate::table::Table;
use crate::twin::{Fit, Trust, Under};

/// What a run has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decided {
    /// What is to be done.
    pub verdict: Verdict,
    /// The three parts of the list.
    pub parts: Parts,
    /// The twin.
    pub twin: TwinStep,
    /// What was played, in a line.
    pub world: String,
    /// All candidates on the part in which is chosen.
    pub compared: Under,
    /// What was chosen, on the part that judges.
    pub judged: Under,
    /// How the shadow of what is to be deployed begins; none where nothing is.
    pub shadow: Option<String>,
}

/// The twin of the site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinStep {
    /// Policy of the site.
    pub policy: String,
    /// What is known of run times.
    pub estimates: EstimateSource,
    /// From a decision to a start, s.
    pub start_delay_s: f64,
    /// How far it can be trusted; none where it is not known when jobs began.
    pub trust: Option<Trust>,
    /// The same in words, on jobs on which nothing was fitted.
    pub verdict: String,
    /// What was fitted.
    pub fit: Option<Fit>,
    /// Its tables with their headings.
    pub tables: Vec<(String, Table)>,
}
