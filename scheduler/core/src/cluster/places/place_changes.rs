//! How often what decides a placement has changed, so that a placement need not be worked out again where nothing has.

use crate::ids::GpuTypeId;

/// Counts of changes. They only grow, so that equal sums mean that nothing changed.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct PlaceChanges {
    /// Of the nodes of each type: what they have free, and whether they are up. `[type]`
    of_type: Vec<u64>,
    /// Of believed speeds.
    of_speeds: u64,
}

impl PlaceChanges {
    pub(in crate::cluster) fn new(num_types: usize) -> PlaceChanges {
        PlaceChanges {
            of_type: vec![0; num_types],
            of_speeds: 0,
        }
    }

    pub(in crate::cluster) fn note_type(&mut self, kind: GpuTypeId) {
        self.of_type[kind.index()] += 1;
    }

    pub(in crate::cluster) fn note_speeds(&mut self) {
        self.of_speeds += 1;
    }

    /// Of believed speeds, and of the nodes of some types.
    pub(in crate::cluster) fn among(&self, kinds: impl Iterator<Item = GpuTypeId>) -> u64 {
        self.of_speeds + kinds.map(|kind| self.of_type[kind.index()]).sum::<u64>()
    }
}
