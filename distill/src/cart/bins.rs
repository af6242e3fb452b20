//! Features in bins: 8 bits per number, and edges that are thresholds.

use rayon::prelude::*;

use super::MAX_ROWS;

/// Rows with their features in bins.
#[derive(Clone, Debug)]
pub struct Binned {
    /// Upper edge of each bin but the last. `[features][bins - 1]`
    pub(super) edges: Vec<Vec<f32>>,
    /// `[features][rows]`
    pub(super) bins: Vec<Vec<u8>>,
    pub(super) num_rows: usize,
}

impl Binned {
    /// Puts `value(row, feature)`, all finite, into at most `num_bins` bins per feature.
    ///
    /// A feature with more distinct values gets bins of about equally many rows.
    ///
    /// # Panics
    /// If there are more than [`MAX_ROWS`] rows or 256 bins.
    #[must_use]
    pub fn new(
        num_rows: usize,
        num_features: usize,
        num_bins: usize,
        value: impl Fn(usize, usize) -> f32 + Sync,
    ) -> Binned {
        assert!(num_rows <= MAX_ROWS, "{num_rows} rows");
        assert!((2..=256).contains(&num_bins), "{num_bins} bins");
        let (edges, bins) = (0..num_features)
            .into_par_iter()
            .map(|feature| {
                let edges = edges_of(&in_order(num_rows, |row| value(row, feature)), num_bins);
                let bins = (0..num_rows)
                    .map(|row| {
                        let found = value(row, feature);
                        edges.partition_point(|edge| *edge < found) as u8
                    })
                    .collect();
                (edges, bins)
            })
            .unzip();
        Binned {
            edges,
            bins,
            num_rows,
        }
    }
}

/// All values in the order of `total_cmp`. Whole numbers in the same order are sorted: twice as fast, the same result.
pub(super) fn in_order(num_rows: usize, value: impl Fn(usize) -> f32) -> Vec<f32> {
    // Sets the sign bit of what has none and turns all bits of what has one, and back.
    let key = |value: f32| {
        let bits = value.to_bits();
        bits ^ ((bits as i32 >> 31) as u32 | 1 << 31)
    };
    let back = |key: u32| f32::from_bits(key ^ ((!key as i32 >> 31) as u32 | 1 << 31));
    let mut keys: Vec<u32> = (0..num_rows).map(|row| key(value(row))).collect();
    keys.sort_unstable();
    keys.into_iter().map(back).collect()
}

/// Edges between groups of equal values: each between two that are next to each other, at most `num_bins - 1`.
pub(super) fn edges_of(sorted: &[f32], num_bins: usize) -> Vec<f32> {
    let gaps = || sorted.windows(2).filter(|pair| pair[0] < pair[1]);
    if gaps().count() < num_bins {
        return gaps().map(|pair| midpoint(pair[0], pair[1])).collect();
    }
    let wanted = sorted.len().div_ceil(num_bins);
    let (mut edges, mut last) = (Vec::new(), 0);
    for (index, pair) in sorted.windows(2).enumerate() {
        if pair[0] < pair[1] && index + 1 - last >= wanted {
            edges.push(midpoint(pair[0], pair[1]));
            last = index + 1;
        }
    }
    edges
}

/// A threshold between two values, `low <= threshold < high`: their middle where a float lies there.
pub(super) fn midpoint(low: f32, high: f32) -> f32 {
    let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
    if middle < high { middle } else { low }
}
