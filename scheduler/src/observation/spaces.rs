//! Sizes of an observation: what an environment fills and a network reads.

use serde::{Deserialize, Serialize};

use crate::features::column;

/// F, the number of features of a candidate.
pub const NUM_CANDIDATE_FEATURES: usize = column::CANDIDATE.len();
/// G, the number of global features.
pub const NUM_GLOBAL_FEATURES: usize = column::GLOBAL.len();

/// Sizes of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spaces {
    /// Global features, G.
    pub num_global: usize,
    /// Rows for candidates, C; also the number of actions.
    pub num_candidates: usize,
    /// Features of a candidate, F.
    pub num_features: usize,
}

impl Spaces {
    /// G global features, at most C candidates of F features each.
    #[must_use]
    pub const fn new(num_global: usize, num_candidates: usize, num_features: usize) -> Spaces {
        Spaces {
            num_global,
            num_candidates,
            num_features,
        }
    }
}
