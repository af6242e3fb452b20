//! What a training leaves in its folder and gives back.

use pleach_network::LearnedPolicy;

use super::curve::CurvePoint;

/// Folder of the numbered checkpoints within a run.
pub const CHECKPOINTS: &str = "checkpoints";
/// History of validation within a run.
pub(super) const VALIDATION_FILE: &str = "validation.json";
/// Largest history, bytes.
pub(super) const VALIDATION_BYTES_MAX: u64 = 64 << 20;

/// What a training run gave.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The network that was best on the validation workloads.
    pub policy: LearnedPolicy,
    /// Validation over training.
    pub curve: Vec<CurvePoint>,
    /// The heuristic that was imitated, if any.
    pub teacher: Option<String>,
}

impl Trained {
    /// The validation of the network that was kept.
    #[must_use]
    pub fn best(&self) -> Option<&CurvePoint> {
        best_of(&self.curve)
    }
}

/// The first of the best points whose network may be kept.
pub(super) fn best_of(curve: &[CurvePoint]) -> Option<&CurvePoint> {
    let first = curve.first()?;
    let admitted = curve.iter().filter(|point| point.is_admitted(first));
    admitted.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
}
