//! Schedulers built on predicted run times.

use super::Entry;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[];
