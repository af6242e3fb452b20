//! By how much one is above another on the same lists.

use std::fmt;

use serde::Serialize;

use super::metric::Versus;
use super::stats::{bootstrap_mean, mean};

/// A paired difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Mean over lists, in the unit of the figure.
    pub mean: f64,
    /// Its 95 % interval; none with fewer than two lists.
    pub interval: Option<(f64, f64)>,
}

impl Gain {
    /// Of figures of the same lists.
    #[must_use]
    pub fn of(own: &[f64], other: &[f64]) -> Gain {
        let gains: Vec<f64> = own.iter().zip(other).map(|(own, other)| own - other).collect();
        Gain::of_differences(&gains)
    }

    /// As a metric is compared: by differences, or by ratios less 1, %.
    #[must_use]
    pub fn by(versus: Versus, own: &[f64], other: &[f64]) -> Gain {
        let more_pct = |(own, other): (&f64, &f64)| 100.0 * (own / other - 1.0);
        match versus {
            Versus::Percent => Gain::of_differences(&own.iter().zip(other).map(more_pct).collect::<Vec<_>>()),
            Versus::Points | Versus::Ratio => Gain::of(own, other),
        }
    }

    /// Of differences of the same lists.
    #[must_use]
    pub fn of_differences(gains: &[f64]) -> Gain {
        Gain {
            mean: mean(gains),
            interval: bootstrap_mean(gains, 0.95),
        }
    }

    /// The interval lies above nothing.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.interval.is_some_and(|(low, _)| low > 0.0)
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&cell(Some(self.mean), self.interval, 2))
    }
}

/// `+1.23 [+1.00, +1.46]`, with so many places; empty where nothing is compared.
pub(crate) fn cell(mean: Option<f64>, interval: Option<(f64, f64)>, places: usize) -> String {
    match (mean, interval) {
        (Some(mean), Some((low, high))) => format!("{mean:+.places$} [{low:+.places$}, {high:+.places$}]"),
        (Some(mean), None) => format!("{mean:+.places$}"),
        _ => String::new(),
    }
}
