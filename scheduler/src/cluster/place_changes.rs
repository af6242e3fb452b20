//! How often what decides a placement has changed, so that a placement need not be worked out again where nothing has.

use super::{Cluster, Sharing};
use crate::ActionKind;
use crate::ids::GpuTypeId;

/// Counts of changes. They only grow, so that equal sums mean that nothing changed.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceChanges {
    /// Of the nodes of each type: what they have free, and whether they are up. `[type]`
    of_type: Vec<u64>,
    /// Of believed speeds.
    of_speeds: u64,
}

impl PlaceChanges {
    pub(super) fn new(num_types: usize) -> PlaceChanges {
        PlaceChanges {
            of_type: vec![0; num_types],
            of_speeds: 0,
        }
    }

    pub(super) fn note_type(&mut self, kind: GpuTypeId) {
        self.of_type[kind.index()] += 1;
    }

    pub(super) fn note_speeds(&mut self) {
        self.of_speeds += 1;
    }
}

impl Cluster {
    /// Equal at two times where a gang of whole GPUs that is not elastic would be placed alike on these types, and run as fast
    /// there, with its links to itself. None where that depends on more: on who shares a GPU, or on other types.
    pub(crate) fn num_place_changes(&self, types: u64) -> Option<u64> {
        if self.capabilities.sharing != Sharing::Off || self.capabilities.can(ActionKind::MixTypes) {
            return None;
        }
        let of_types = self
            .types_in(types)
            .map(|kind| self.changes.of_type[kind.index()]);
        Some(self.changes.of_speeds + of_types.sum::<u64>())
    }
}
