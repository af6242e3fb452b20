//! Hadar and HadarE: mixed types and copies.

use super::Entry;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[];
