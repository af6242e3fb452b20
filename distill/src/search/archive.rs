//! The best trees of each size.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::config::Outcome;
use super::draft::Draft;

/// A tree that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The tree.
    pub draft: Draft,
    /// The start that it comes from.
    pub origin: String,
    /// On all lists of the race.
    pub outcomes: Vec<Outcome>,
    /// What is to be little.
    pub objective: f64,
}

/// The best trees of each size (leaves, and whether there is a key), best first within a size; no two of them did the same on every
/// list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Archive {
    /// By size, smallest first.
    sizes: Vec<Vec<Entry>>,
}

impl Archive {
    /// Whether the trees of each size are together, as they are in what was written.
    pub(super) fn is_whole(&self) -> bool {
        let sizes = || {
            self.sizes
                .iter()
                .map(|entries| entries.first().map(|entry| entry.draft.size()))
        };
        let is_of_one_size = |entries: &Vec<Entry>| {
            entries
                .iter()
                .all(|entry| entry.draft.size() == entries[0].draft.size())
        };
        sizes().all(|size| size.is_some())
            && self.sizes.iter().all(is_of_one_size)
            && sizes().zip(sizes().skip(1)).all(|(own, next)| own < next)
    }

    /// All trees.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sizes.iter().flatten()
    }

    /// Number of trees.
    #[must_use]
    pub fn num_entries(&self) -> usize {
        self.entries().count()
    }

    /// The trees of one size, best first.
    #[must_use]
    pub fn of_size(&self, size: (usize, bool)) -> &[Entry] {
        let found = self.sizes.iter().find(|entries| entries[0].draft.size() == size);
        found.map_or(&[], Vec::as_slice)
    }

    /// The best tree of each size that is better than all smaller ones, smallest first.
    #[must_use]
    pub fn frontier(&self) -> Vec<&Entry> {
        let mut found: Vec<&Entry> = Vec::new();
        for entry in self.sizes.iter().filter_map(|entries| entries.first()) {
            if found.iter().all(|smaller| entry.objective < smaller.objective) {
                found.push(entry);
            }
        }
        found
    }

    /// The tree that is best of all.
    #[must_use]
    pub fn best(&self) -> Option<&Entry> {
        self.entries().min_by(|a, b| a.objective.total_cmp(&b.objective))
    }

    /// The best tree of a size or a smaller one.
    pub(super) fn best_up_to(&self, size: (usize, bool)) -> Option<&Entry> {
        let small = self.entries().filter(|entry| entry.draft.size() <= size);
        small.min_by(|a, b| a.objective.total_cmp(&b.objective))
    }

    /// Whether a smaller or equally large tree did the same on the first lists.
    pub(super) fn has_done(&self, outcomes: &[Outcome], size: (usize, bool)) -> bool {
        self.entries()
            .filter(|entry| entry.draft.size() <= size)
            .any(|entry| entry.outcomes.starts_with(outcomes))
    }

    /// Takes a tree in if it is among the best of its size and did anything that no tree of its size or smaller did. Larger ones
    /// that did the same go.
    pub(super) fn offer(&mut self, entry: Entry, of_each_size: usize) -> bool {
        let size = entry.draft.size();
        if self.has_done(&entry.outcomes, size) {
            return false;
        }
        let place = self
            .sizes
            .partition_point(|entries| entries[0].draft.size() < size);
        let is_new = self
            .sizes
            .get(place)
            .is_none_or(|entries| entries[0].draft.size() != size);
        if is_new {
            self.sizes.insert(place, vec![entry]);
        } else {
            let entries = &mut self.sizes[place];
            let rank = entries.partition_point(|other| other.objective <= entry.objective);
            if rank >= of_each_size {
                return false;
            }
            entries.insert(rank, entry);
            entries.truncate(of_each_size);
        }
        self.drop_copies(place);
        true
    }

    /// Drops larger trees that did what a tree of the size at `place` did.
    fn drop_copies(&mut self, place: usize) {
        let (small, large) = self.sizes.split_at_mut(place + 1);
        for entries in large.iter_mut() {
            entries.retain(|entry| small[place].iter().all(|own| own.outcomes != entry.outcomes));
        }
        self.sizes.retain(|entries| !entries.is_empty());
    }

    /// A tree to change: three times of four one of a size on the frontier, the better the likelier, else any.
    pub(super) fn parent(&self, rng: &mut ChaCha8Rng) -> Option<&Entry> {
        let num = self.num_entries();
        if num == 0 {
            return None;
        }
        let any = rng.random_range(0..num);
        if rng.random::<f64>() < 0.25 {
            return self.entries().nth(any);
        }
        let mut frontier = self.frontier();
        frontier.reverse();
        let mut rank = 0;
        while rank + 1 < frontier.len() && rng.random::<f64>() < 0.6 {
            rank += 1;
        }
        let of_size = self.of_size(frontier[rank].draft.size());
        let place = rng.random_range(0..of_size.len());
        of_size.get(place)
    }
}
