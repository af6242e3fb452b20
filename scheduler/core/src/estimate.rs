//! What a scheduler believes: a number with its provenance, so that no policy ever mistakes a guess for the truth.

use serde::{Deserialize, Serialize};

/// Where a believed value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// The user's own limit (Slurm's `--time`).
    UserLimit,
    /// A predictor trained on finished jobs.
    Predicted,
    /// Measured beforehand.
    Profile,
    /// The truth; exists only in simulation.
    Oracle,
}

/// A believed value and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value, in the unit of the quantity it stands for.
    pub value: f64,
    /// Its source.
    pub provenance: Provenance,
}
