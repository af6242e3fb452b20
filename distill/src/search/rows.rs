//! Candidates as they come, by which splits and thresholds are chosen: a threshold moves by ranks among the rows that come to its
//! node, so that a step means as much where values are dense as where they are thin.

use pleach_scheduler::features::{DECISION_1, FeatureSchema, Group, View};

use crate::dataset::Dataset;

/// One condition of a path: feature, threshold, whether the path goes left.
pub(super) type Condition = (u16, f32, bool);

/// Joined rows: a candidate's features, then the global ones.
#[derive(Clone, Debug)]
pub struct Rows {
    schema: &'static FeatureSchema,
    view: View,
    /// `[R, F]`
    values: Vec<f32>,
    /// Numbers of the columns of a row.
    of_rows: Vec<u16>,
    /// Numbers of the columns of the context.
    of_context: Vec<u16>,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows::none(FeatureSchema::current(), DECISION_1)
    }
}

impl Rows {
    /// The rows of recorded decision points: every `n`-th of them, so that at most `rows_max` are kept.
    #[must_use]
    pub fn of(dataset: &Dataset, rows_max: usize) -> Rows {
        let every = dataset.num_rows().div_ceil(rows_max.max(1)).max(1);
        let mut rows = Rows::none(dataset.schema(), dataset.view());
        let View { len, num_row, .. } = rows.view;
        let mut number = 0;
        for index in 0..dataset.num_points() {
            let point = dataset.point(index);
            for candidate in point.candidates.chunks_exact(num_row) {
                if number % every == 0 {
                    let start = rows.values.len();
                    rows.values.resize(start + len, 0.0);
                    let joined = &mut rows.values[start..];
                    rows.schema.join(candidate, point.global, joined);
                }
                number += 1;
            }
        }
        rows
    }

    /// The same rows of which some columns are neither split at nor weighed.
    #[must_use]
    pub fn without(mut self, numbers: &[u16]) -> Rows {
        self.of_rows.retain(|number| !numbers.contains(number));
        self.of_context.retain(|number| !numbers.contains(number));
        self
    }

    /// No rows of a view.
    #[must_use]
    pub fn none(schema: &'static FeatureSchema, view: View) -> Rows {
        let of = |group: Group| -> Vec<u16> {
            let numbers = 0..view.len as u16;
            numbers
                .filter(|number| schema.features[usize::from(*number)].group == group)
                .collect()
        };
        Rows {
            schema,
            view,
            values: Vec::new(),
            of_rows: of(Group::Row),
            of_context: of(Group::Context),
        }
    }

    #[cfg(test)]
    pub(super) fn with(values: Vec<f32>) -> Rows {
        Rows {
            values,
            ..Rows::default()
        }
    }

    /// The columns of its rows.
    #[must_use]
    pub fn schema(&self) -> &'static FeatureSchema {
        self.schema
    }

    /// Numbers of the columns of a row.
    pub(super) fn of_rows(&self) -> &[u16] {
        &self.of_rows
    }

    /// Numbers of the columns of the context.
    pub(super) fn of_context(&self) -> &[u16] {
        &self.of_context
    }

    /// R.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.values.len() / self.view.len
    }

    pub(super) fn value(&self, row: u32, feature: u16) -> f32 {
        self.values[row as usize * self.view.len + usize::from(feature)]
    }

    /// The rows that meet all conditions of a path.
    pub(super) fn reaching(&self, path: &[Condition]) -> Vec<u32> {
        let meets = |row: &u32| {
            path.iter()
                .all(|(feature, threshold, is_left)| (self.value(*row, *feature) <= *threshold) == *is_left)
        };
        (0..self.num_rows() as u32).filter(meets).collect()
    }

    /// The values of a feature among some rows, sorted.
    pub(super) fn sorted(&self, rows: &[u32], feature: u16) -> Vec<f32> {
        let mut values: Vec<f32> = rows.iter().map(|row| self.value(*row, feature)).collect();
        values.sort_unstable_by(f32::total_cmp);
        values
    }
}

/// A threshold between two sorted values as near to `rank` (0 to the number of values) as can be; none where all are equal.
pub(super) fn threshold_at(sorted: &[f32], rank: usize) -> Option<f32> {
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    if first == last {
        return None;
    }
    let rank = rank.clamp(1, sorted.len() - 1);
    // The gap at the rank, or the next one below or above it.
    let below = sorted[rank - 1];
    let low = if below < last {
        below
    } else {
        largest_below(sorted, last)
    };
    let high = sorted[sorted.partition_point(|value| *value <= low)];
    let middle = low + (high - low) / 2.0;
    Some(if middle < high { middle } else { low })
}

fn largest_below(sorted: &[f32], bound: f32) -> f32 {
    sorted[sorted.partition_point(|value| *value < bound).max(1) - 1]
}

/// How many values a threshold sends left.
pub(super) fn rank_of(sorted: &[f32], threshold: f32) -> usize {
    sorted.partition_point(|value| *value <= threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_lies_in_a_gap_and_separates_at_any_rank() {
        let sorted = [0.0, 0.0, 0.25, 0.25, 0.25, 1.0];
        for rank in 0..=7 {
            let threshold = threshold_at(&sorted, rank).unwrap();
            let left = rank_of(&sorted, threshold);
            assert!((1..6).contains(&left), "rank {rank}: {threshold}");
        }
        assert_eq!(threshold_at(&sorted, 2), Some(0.125));
        assert_eq!(threshold_at(&sorted, 5), Some(0.625));
        assert_eq!(threshold_at(&[0.5, 0.5], 1), None);
        assert_eq!(threshold_at(&[], 1), None);
        // Neighbouring floats still separate.
        let next = 0.5_f32.next_up();
        assert_eq!(threshold_at(&[0.5, next], 1), Some(0.5));
    }
}
