//! Synergy: CPU and memory beside GPUs.

use super::Entry;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[];
