//! Candidates as they come, by which splits and thresholds are chosen: a threshold moves by ranks among the rows that come to its
//! node, so that a step means as much where values are dense as where they are thin.

use pleach_scheduler::observation::NUM_CANDIDATE_FEATURES;

use crate::dataset::{Dataset, NUM_FEATURES};

/// One condition of a path: feature, threshold, whether the path goes left.
pub(super) type Condition = (u16, f32, bool);

/// Joined rows: a candidate's features, then the global ones.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// `[R, F]`
    values: Vec<f32>,
}

impl Rows {
    /// The rows of recorded decision points: every `n`-th of them, so that at most `rows_max` are kept.
    #[must_use]
    pub fn of(dataset: &Dataset, rows_max: usize) -> Rows {
        let every = dataset.num_rows().div_ceil(rows_max.max(1)).max(1);
        let mut rows = Rows::default();
        let mut number = 0;
        for index in 0..dataset.num_points() {
            let point = dataset.point(index);
            for candidate in point.candidates.chunks_exact(NUM_CANDIDATE_FEATURES) {
                if number % every == 0 {
                    rows.values.extend_from_slice(candidate);
                    rows.values.extend_from_slice(point.global);
                }
                number += 1;
            }
        }
        rows
    }

    #[cfg(test)]
    pub(super) fn with(values: Vec<f32>) -> Rows {
        Rows { values }
    }

    /// R.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.values.len() / NUM_FEATURES
    }

    pub(super) fn value(&self, row: u32, feature: u16) -> f32 {
        self.values[row as usize * NUM_FEATURES + usize::from(feature)]
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
