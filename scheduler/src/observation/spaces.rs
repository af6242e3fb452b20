//! Sizes of an observation: what an environment fills and a network reads.

use serde::{Deserialize, Serialize};

use crate::features::column;

/// F, the number of features of a candidate.
pub const NUM_CANDIDATE_FEATURES: usize = column::CANDIDATE.len();
/// G, the number of global features.
pub const NUM_GLOBAL_FEATURES: usize = column::GLOBAL.len();

/// Rows of one kind of entity at the end of an observation's global numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetSpace {
    /// Most rows. An entity's first number is above 0; rows without one are zero and stand last.
    pub num_rows: usize,
    /// Features of a row.
    pub num_features: usize,
}

impl SetSpace {
    /// Numbers of all its rows.
    #[must_use]
    pub fn len(self) -> usize {
        self.num_rows * self.num_features
    }

    /// There are no such entities.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Kinds of entities beside candidates: running jobs and groups of nodes.
pub const NUM_SETS: usize = 2;

/// Sizes of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spaces {
    /// Numbers that are not about a candidate, G: global features, and behind them the rows of `sets`.
    pub num_global: usize,
    /// Rows for candidates, C; also the number of actions.
    pub num_candidates: usize,
    /// Features of a candidate, F.
    pub num_features: usize,
    /// Entities whose rows are the end of the global numbers, one kind after the other; none unless the environment shows them.
    #[serde(default, skip_serializing_if = "no_sets")]
    pub sets: [SetSpace; NUM_SETS],
}

fn no_sets(sets: &[SetSpace; NUM_SETS]) -> bool {
    sets.iter().all(|set| set.is_empty())
}

impl Spaces {
    /// Sizes of observations without entities.
    #[must_use]
    pub const fn plain(num_global: usize, num_candidates: usize, num_features: usize) -> Spaces {
        let none = SetSpace {
            num_rows: 0,
            num_features: 0,
        };
        Spaces {
            num_global,
            num_candidates,
            num_features,
            sets: [none; NUM_SETS],
        }
    }

    /// Whether there are rows of entities.
    #[must_use]
    pub fn has_entities(&self) -> bool {
        !no_sets(&self.sets)
    }

    /// Global features in front of the rows of entities.
    #[must_use]
    pub fn num_plain(&self) -> usize {
        self.num_global - self.sets.iter().map(|set| set.len()).sum::<usize>()
    }
}
