//! What a rule is.

use crate::engine::{Engine, StageId};

/// Makes the decisions of a play.
pub trait Rule: Send {
    /// What is chosen: a stage and executors, at least 1; none: all that is left goes to the common pool.
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)>;
}

/// A share as whole executors, rounded up but for what the arithmetic adds.
pub(crate) fn ceil_share(share: f64) -> u32 {
    (share - 1e-9).ceil().clamp(0.0, f64::from(u32::MAX)) as u32
}
