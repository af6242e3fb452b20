//! Features that had one value wherever a network was judged, and so may not speak of what happens when they have another.

use serde::{Deserialize, Serialize};

/// Columns with their one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Of the global features.
    pub global: Vec<(usize, f32)>,
    /// Of the features of admissible candidates.
    pub candidates: Vec<(usize, f32)>,
}

impl Constants {
    /// There are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.global.is_empty() && self.candidates.is_empty()
    }

    /// Whether a decision has these values: `global` is `[G]`, `candidates` is `[C, F]`, `mask` is `[C]`. A column that is not
    /// there does not.
    #[must_use]
    pub fn hold(&self, global: &[f32], candidates: &[f32], mask: &[bool]) -> bool {
        let has = |row: &[f32], known: &[(usize, f32)]| {
            known
                .iter()
                .all(|(column, value)| row.get(*column) == Some(value))
        };
        let num_features = candidates.len() / mask.len().max(1);
        let rows = candidates.chunks_exact(num_features.max(1)).zip(mask);
        let mut admissible = rows.filter(|(_, admissible)| **admissible);
        has(global, &self.global) && admissible.all(|(row, _)| has(row, &self.candidates))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_are_noticed_in_admissible_rows_only() {
        let constants = Constants {
            global: vec![(1, 2.0)],
            candidates: vec![(0, 5.0)],
        };
        let (candidates, mask) = ([5.0, 1.0, 6.0, 1.0], [true, false]);
        assert!(constants.hold(&[0.0, 2.0], &candidates, &mask));
        assert!(!constants.hold(&[0.0, 2.5], &candidates, &mask));
        assert!(!constants.hold(&[0.0, 2.0], &candidates, &[true, true]));
        assert!(!constants.hold(&[0.0], &candidates, &mask));
        assert!(Constants::default().is_empty() && Constants::default().hold(&[], &[], &[]));
    }
}
