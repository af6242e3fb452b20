//! The curve of a run: what its networks were worth on the validation workloads.

use serde::{Deserialize, Serialize};

use crate::train::validation::highest_ratio;

/// One validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Updates made.
    pub update: u64,
    /// Environment steps made.
    pub num_frames: u64,
    /// What the objective is worth against the best heuristic, see [`Validation::ratio`](crate::train::validation::Validation::ratio).
    pub ratio: f64,
    /// Largest excess over a bound, see [`Constraint::excess`](crate::train::constraint::Constraint::excess); none without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// The same, workload by workload.
    pub ratios: Vec<f64>,
    /// The ratio of draws of the network, of a learner that learns from draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<f64>,
    /// Its network was to be kept and is in no file any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

impl CurvePoint {
    /// Whether the network may be the one that is kept: it kept to all bounds, and if the run's first network did too, it is
    /// better than that one by more than luck, see [`highest_ratio`]. The first one itself needs only keep to the bounds.
    #[must_use]
    pub(crate) fn is_admitted(&self, first: &CurvePoint) -> bool {
        let is_first = self.update == first.update;
        let is_better = || highest_ratio(&self.ratios, &first.ratios) < 1.0;
        !self.lost && self.keeps_bounds() && (is_first || !first.keeps_bounds() || is_better())
    }

    /// Whether what is drawn and what is deployed are further apart than a part of the better one; 0 for never.
    pub(crate) fn is_apart(&self, most: f64) -> bool {
        let apart = |drawn: f64| (drawn.max(self.ratio) / drawn.min(self.ratio)) - 1.0 > most;
        most > 0.0 && self.drawn.is_some_and(apart)
    }

    fn keeps_bounds(&self) -> bool {
        self.excess.is_none_or(|excess| excess <= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_apart_where_either_is_worse_by_more_than_the_bound() {
        let point = |ratio: f64, drawn: Option<f64>| CurvePoint {
            update: 0,
            num_frames: 0,
            ratio,
            excess: None,
            ratios: Vec::new(),
            drawn,
            lost: false,
        };
        assert!(point(1.0, Some(1.04)).is_apart(0.03) && point(1.04, Some(1.0)).is_apart(0.03));
        assert!(!point(1.0, Some(1.02)).is_apart(0.03) && !point(1.0, None).is_apart(0.03));
        assert!(!point(1.0, Some(9.0)).is_apart(0.0));
    }

    #[test]
    fn the_first_network_is_only_replaced_by_what_keeps_to_the_bounds_and_is_surely_better() {
        let point = |update: u64, ratio: f64, excess: f64| CurvePoint {
            update,
            num_frames: 0,
            ratio,
            excess: Some(excess),
            ratios: vec![ratio, ratio * 1.02, ratio * 0.98],
            drawn: None,
            lost: false,
        };
        let first = point(0, 1.0, -0.1);
        assert!(first.is_admitted(&first) && point(10, 0.9, 0.0).is_admitted(&first));
        assert!(!point(10, 1.0, -0.1).is_admitted(&first));
        assert!(!point(10, 0.9, 0.01).is_admitted(&first));
        // Where the first one breaks a bound there is nothing to be better than.
        let broken = point(0, 1.0, 0.1);
        assert!(!broken.is_admitted(&broken) && point(10, 1.1, 0.0).is_admitted(&broken));
    }
}
