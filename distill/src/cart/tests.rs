//! Against hand-worked cases and a search over all thresholds.

use super::bins::{edges_of, in_order, midpoint};
use super::*;
use proptest::prelude::*;

fn free() -> CartConfig {
    CartConfig {
        bins: 256,
        leaf_rows_min: 1,
        leaf_weight_min: 0.0,
        gain_min: 1e-6,
        ..CartConfig::default()
    }
}

fn fit(rows: &[Vec<f32>], target: &[f32], weight: &[f32], leaves: usize, config: &CartConfig) -> Grown {
    let value = |row: usize, feature: usize| rows[row][feature];
    let data = Binned::new(rows.len(), rows[0].len(), config.bins, value);
    grow(&data, value, target, weight, leaves, config, &[])
}

/// Weighted squared error of the rows around their mean.
fn error(rows: &[usize], target: &[f32], weight: &[f32]) -> f64 {
    let total: f64 = rows.iter().map(|row| f64::from(weight[*row])).sum();
    let mean = rows
        .iter()
        .map(|row| f64::from(weight[*row]) * f64::from(target[*row]))
        .sum::<f64>()
        / total;
    rows.iter()
        .map(|row| f64::from(weight[*row]) * (f64::from(target[*row]) - mean).powi(2))
        .sum()
}

/// The largest gain of any split of some rows, by trying them all.
fn slow_gain(rows: &[Vec<f32>], of_node: &[usize], target: &[f32], weight: &[f32]) -> f64 {
    let whole = error(of_node, target, weight);
    let mut best = 0.0_f64;
    for (feature, _) in rows[0].iter().enumerate() {
        for edge in of_node.iter().map(|row| rows[*row][feature]) {
            let (left, right): (Vec<usize>, Vec<usize>) =
                of_node.iter().partition(|row| rows[**row][feature] <= edge);
            if !right.is_empty() {
                let gain = whole - error(&left, target, weight) - error(&right, target, weight);
                best = best.max(gain);
            }
        }
    }
    best
}

#[test]
fn three_steps_are_found_exactly_with_thresholds_in_the_middle_of_the_gaps() {
    let rows: Vec<Vec<f32>> = (0..12).map(|row| vec![0.5, row as f32]).collect();
    let target: Vec<f32> = (0..12).map(|row| [5.0, 1.0, -6.0][row / 4]).collect();
    let grown = fit(&rows, &target, &[1.0; 12], 8, &free());
    assert_eq!(grown.num_leaves(), 3, "nothing is left to split");
    let first = grown.nodes[0].split.unwrap();
    assert_eq!((first.feature, first.threshold), (1, 7.5));
    let second = grown.nodes[first.left].split.unwrap();
    assert_eq!((second.feature, second.threshold), (1, 3.5));
    assert!((grown.nodes[first.right].mean + 6.0).abs() < 1e-6);
    assert_eq!(grown.nodes[second.left].samples, 4);
    // Error before: 4 * (25 + 1 + 36), mean 0; after the first split: 8 rows around 3 with 4 each.
    assert!((first.gain - (248.0 - 32.0)).abs() < 1e-4);
}

#[test]
fn smaller_trees_are_the_first_splits_of_the_larger_one() {
    let rows: Vec<Vec<f32>> = (0..64)
        .map(|row| vec![row as f32, (row * 7 % 64) as f32])
        .collect();
    let target: Vec<f32> = (0..64).map(|row| ((row * row) % 17) as f32).collect();
    let whole = fit(&rows, &target, &[1.0; 64], 16, &free());
    for leaves in 1..=16 {
        let part = fit(&rows, &target, &[1.0; 64], leaves, &free());
        assert_eq!(whole.nodes_with(leaves), part.nodes_with(leaves));
        assert_eq!(whole.nodes_with(leaves).len(), 2 * leaves - 1);
    }
}

#[test]
fn leaves_respect_their_bounds() {
    let rows: Vec<Vec<f32>> = (0..40).map(|row| vec![row as f32]).collect();
    let mut target = vec![0.0; 40];
    target[0] = 100.0;
    let config = CartConfig {
        leaf_rows_min: 5,
        ..free()
    };
    let grown = fit(&rows, &target, &[1.0; 40], 8, &config);
    assert!(grown.nodes.iter().all(|node| node.samples >= 5));
    let config = CartConfig {
        depth_max: 1,
        ..free()
    };
    assert_eq!(fit(&rows, &target, &[1.0; 40], 8, &config).num_leaves(), 2);
    let config = CartConfig {
        leaf_weight_min: 0.3,
        ..free()
    };
    let grown = fit(&rows, &target, &[1.0; 40], 8, &config);
    assert!(grown.nodes.iter().all(|node| node.weight >= 12.0));
}

proptest! {
    #[test]
    fn values_are_put_in_the_order_of_total_cmp(values in prop::collection::vec(any::<f32>(), 0..50)) {
        let mut slow = values.clone();
        slow.sort_by(f32::total_cmp);
        let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
        prop_assert_eq!(bits(&in_order(values.len(), |row| values[row])), bits(&slow));
    }
}

#[test]
fn many_values_share_bins_of_about_equal_size() {
    let rows: Vec<f32> = (0..10_000).map(|row| (row as f32).sqrt()).collect();
    let edges = edges_of(&rows, 16);
    assert_eq!(edges.len(), 15);
    let counts: Vec<usize> = edges
        .iter()
        .map(|edge| rows.partition_point(|value| value <= edge))
        .collect();
    assert!(counts.windows(2).all(|pair| pair[1] - pair[0] == 625));
    let mut spiked = vec![0.0; 5000];
    spiked.extend((0..5000).map(|value| value as f32));
    assert!(edges_of(&spiked, 16).len() < 16);
}

#[test]
fn a_threshold_between_neighbouring_floats_still_separates_them() {
    let low = 0.1_f32;
    let high = f32::from_bits(low.to_bits() + 1);
    let middle = midpoint(low, high);
    assert!(low <= middle && middle < high);
}

#[test]
fn the_tree_is_the_same_at_any_number_of_threads() {
    let rows: Vec<Vec<f32>> = (0..3000_u32)
        .map(|row| {
            (0..9)
                .map(|feature| (row.wrapping_mul(2_654_435_761).rotate_left(feature) >> 8) as f32 / 1e6)
                .collect()
        })
        .collect();
    let target: Vec<f32> = rows
        .iter()
        .map(|row| (row[0] * 3.0).sin() + row[4] * 0.1)
        .collect();
    let weight: Vec<f32> = rows.iter().map(|row| 0.1 + row[7] / 20.0).collect();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| fit(&rows, &target, &weight, 32, &CartConfig::default()))
    };
    let one = with(1);
    assert_eq!(one.num_leaves(), 32);
    assert_eq!(one, with(3));
    assert_eq!(one, with(8));
}

proptest! {
    #[test]
    fn every_split_gains_as_much_as_the_best_that_a_full_search_finds(
        rows in prop::collection::vec((prop::collection::vec(0..8_u8, 3), -3.0..3.0_f32, 0.05..1.5_f32), 2..40),
    ) {
        let target: Vec<f32> = rows.iter().map(|row| row.1).collect();
        let weight: Vec<f32> = rows.iter().map(|row| row.2).collect();
        let features: Vec<Vec<f32>> =
            rows.iter().map(|row| row.0.iter().map(|value| f32::from(*value) / 8.0).collect()).collect();
        let grown = fit(&features, &target, &weight, 8, &free());
        let mut of_node = vec![Vec::new(); grown.nodes.len()];
        of_node[0] = (0..rows.len()).collect::<Vec<usize>>();
        let scale = error(&of_node[0], &target, &weight).max(1e-3);
        for (place, node) in grown.nodes.iter().enumerate() {
            let here = std::mem::take(&mut of_node[place]);
            prop_assert_eq!(node.samples as usize, here.len());
            let best = slow_gain(&features, &here, &target, &weight);
            match node.split {
                Some(split) => {
                    prop_assert!((split.gain - best).abs() <= 1e-5 * scale, "{} but {best}", split.gain);
                    for row in here {
                        let side = if features[row][split.feature] <= split.threshold { split.left } else { split.right };
                        of_node[side].push(row);
                    }
                }
                None => prop_assert!(grown.num_leaves() == 8 || best <= 2e-6 * scale + 1e-9, "missed {best}"),
            }
        }
    }
}
