//! Gavel: fractions of time on every GPU type.

use super::Entry;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[];
