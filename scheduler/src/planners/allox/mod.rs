//! AlloX: jobs to machines as a matching.

use super::Entry;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[];
