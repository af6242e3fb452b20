//! What production clusters run: gangs that relax their locality, quotas, backfilling.

use super::Entry;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[];
