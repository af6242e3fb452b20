//! Greedy growth beside the best tree of depth 2 and 3, found by trying them all.

use super::*;
use proptest::prelude::*;

/// What the best tree of `depth` explains of these rows: the sum of moment^2 / weight over its leaves.
fn best(rows: &[[u8; 3]], target: &[f32], of_node: &[usize], depth: usize) -> f64 {
    let sum: f64 = of_node.iter().map(|row| f64::from(target[*row])).sum();
    let alone = sum * sum / of_node.len() as f64;
    if depth == 0 {
        return alone;
    }
    let mut most = alone;
    for feature in 0..3 {
        for threshold in 0..3_u8 {
            let (left, right): (Vec<usize>, Vec<usize>) =
                of_node.iter().partition(|row| rows[**row][feature] <= threshold);
            if !left.is_empty() && !right.is_empty() {
                most = most.max(best(rows, target, &left, depth - 1) + best(rows, target, &right, depth - 1));
            }
        }
    }
    most
}

/// What greedy growth to `depth` explains.
fn greedy(rows: &[[u8; 3]], target: &[f32], depth: usize) -> f64 {
    let config = CartConfig {
        leaf_rows_min: 1,
        leaf_weight_min: 0.0,
        gain_min: 0.0,
        depth_max: depth,
        ..CartConfig::default()
    };
    let value = |row: usize, feature: usize| f32::from(rows[row][feature]);
    let data = Binned::new(rows.len(), 3, config.bins, value);
    let weight = vec![1.0; rows.len()];
    let grown = grow(&data, value, target, &weight, 1 << depth, &config, &[]);
    let leaves = grown.nodes.iter().filter(|node| node.split.is_none());
    leaves
        .map(|leaf| leaf.mean * leaf.mean * leaf.samples as f64)
        .sum()
}

proptest! {
    #[test]
    fn nothing_grown_beats_the_best_tree(
        rows in prop::collection::vec(([0..4_u8, 0..4_u8, 0..4_u8], -3.0..3.0_f32), 2..40),
        depth in 2..4_usize,
    ) {
        let target: Vec<f32> = rows.iter().map(|row| row.1).collect();
        let rows: Vec<[u8; 3]> = rows.iter().map(|row| row.0).collect();
        let all: Vec<usize> = (0..rows.len()).collect();
        let (most, grown) = (best(&rows, &target, &all, depth), greedy(&rows, &target, depth));
        prop_assert!(grown <= most + 1e-5 * most.max(1.0), "grown {grown}, best {most}");
    }

    /// A tree in which each question higher up matters more than all below it: greed finds it.
    #[test]
    fn a_planted_tree_is_found(
        features in prop::collection::vec(0..3_usize, 7),
        thresholds in prop::collection::vec(0..3_u8, 7),
        depth in 2..4_usize,
    ) {
        let rows: Vec<[u8; 3]> = (0..64_u8).map(|cell| [cell % 4, cell / 4 % 4, cell / 16]).collect();
        let planted = |row: &[u8; 3]| {
            let (mut place, mut answer) = (0, 0.0_f32);
            for level in 0..depth {
                let goes_right = row[features[place]] > thresholds[place];
                let step = 0.05_f32.powi(level as i32);
                answer += if goes_right { step } else { -step };
                place = 2 * place + 1 + usize::from(goes_right);
            }
            answer
        };
        let target: Vec<f32> = rows.iter().map(planted).collect();
        let all: Vec<usize> = (0..rows.len()).collect();
        let (most, grown) = (best(&rows, &target, &all, depth), greedy(&rows, &target, depth));
        prop_assert!((most - grown).abs() <= 1e-6 * most, "grown {grown}, best {most}");
    }
}

/// Two features that say nothing alone and everything together: the best tree needs one question that gains nothing, and
/// greed does not ask it. This is the price of greed, and why trees are also searched in the simulator.
#[test]
fn greed_misses_what_needs_two_questions_at_once() {
    let rows: Vec<[u8; 3]> = (0..64_u8)
        .map(|cell| [cell % 4, cell / 4 % 4, cell / 16])
        .collect();
    let target: Vec<f32> = rows
        .iter()
        .map(|row| if (row[0] > 1) == (row[1] > 1) { 1.0 } else { -1.0 })
        .collect();
    let all: Vec<usize> = (0..rows.len()).collect();
    assert!((best(&rows, &target, &all, 2) - 64.0).abs() < 1e-9);
    assert!(greedy(&rows, &target, 2) < 32.0);
}
