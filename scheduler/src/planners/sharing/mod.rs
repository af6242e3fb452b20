//! Schedulers that put several jobs on one GPU.

use super::Entry;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[];
