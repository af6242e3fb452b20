//! Sizes of an observation: what an environment fills and a network reads.

use serde::{Deserialize, Serialize};

use crate::features::View;

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

    /// The columns of a view, for at most C candidates.
    #[must_use]
    pub const fn of(view: &View, num_candidates: usize) -> Spaces {
        Spaces::new(view.num_context, num_candidates, view.num_row)
    }
}
