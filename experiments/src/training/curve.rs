//! The curve of a run: what its networks were worth on the validation workloads.

use serde::{Deserialize, Serialize};

/// One validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Updates made.
    pub update: u64,
    /// Environment steps made.
    pub num_frames: u64,
    /// Average JCT against the best heuristic, see [`Validation::ratio`](crate::validation::Validation::ratio).
    pub ratio: f64,
    /// Largest excess over a bound, see [`Constraint::excess`](crate::constraint::Constraint::excess); none without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// Average JCT against the best heuristic, workload by workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<f64>,
    /// The highest that the ratio to the run's first network may well be, see [`highest_ratio`](crate::validation::highest_ratio); none for the
    /// first, and where the first did not keep to the bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_first_high: Option<f64>,
}

impl CurvePoint {
    /// The network kept to all bounds and is no worse than the first by more than luck: it may be the one that is kept.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.keeps_bounds() && self.over_first_high.is_none_or(|high| high < 1.0)
    }

    /// The network kept to all bounds.
    #[must_use]
    pub fn keeps_bounds(&self) -> bool {
        self.excess.is_none_or(|excess| excess <= 0.0)
    }
}
