//! By how much one is above another on the same lists.

use std::fmt;

use serde::Serialize;

use crate::evaluate::stats::{bootstrap_mean, mean};

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
        Gain {
            mean: mean(&gains),
            interval: bootstrap_mean(&gains, 0.95),
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
        write!(out, "{:+.2}", self.mean)?;
        match self.interval {
            Some((low, high)) => write!(out, " [{low:+.2}, {high:+.2}]"),
            None => Ok(()),
        }
    }
}
