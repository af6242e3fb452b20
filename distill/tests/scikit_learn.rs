//! The trees of scikit-learn on small tables (`scikit_learn.txt`, made by `lab/bench/peers/cart.py --mint`) are ours too, split by
//! split.

#![allow(missing_docs)]

use pleach_distill::cart::{Binned, CartConfig, grow};
use pleach_scheduler::tree::Node;

/// One step of SplitMix64, as the script has it.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// The table of the script: integers below 64, and targets of which sums are exact in any order.
fn table(seed: u64, num_rows: usize, width: usize) -> (Vec<Vec<f32>>, Vec<f32>) {
    let at = |row: usize, column: usize| mixed(seed << 32 | (row as u64) << 8 | column as u64);
    let rows: Vec<Vec<f32>> = (0..num_rows)
        .map(|row| (0..width).map(|column| (at(row, column) >> 58) as f32).collect())
        .collect();
    let step = |is_so: bool, height: f32| if is_so { height } else { 0.0 };
    let target = rows.iter().enumerate().map(|(index, row)| {
        let noise = (at(index, 255) >> 54) as f32 / 1024.0;
        step(row[0] > 31.0, 4.0) + row[1] / 16.0 + step(row[2] > row[0], 2.0) + noise
    });
    let target = target.collect();
    (rows, target)
}

/// Lines of the file for a tree of ours.
fn outline(nodes: &[Node], place: usize, lines: &mut Vec<(String, f64)>) {
    match nodes[place] {
        Node::Leaf { score, samples, .. } => lines.push((format!("leaf {samples}"), f64::from(score))),
        Node::Split {
            feature,
            threshold,
            left,
            right,
        } => {
            lines.push((format!("split {feature}"), f64::from(threshold)));
            outline(nodes, left as usize, lines);
            outline(nodes, right as usize, lines);
        }
    }
}

#[test]
fn our_trees_are_those_of_scikit_learn() {
    let text = include_str!("scikit_learn.txt");
    let tables: Vec<&str> = text.split("\ntable ").skip(1).collect();
    assert_eq!(tables.len(), 6);
    for of_table in tables {
        let mut lines = of_table.lines();
        let numbers: Vec<usize> = lines
            .next()
            .unwrap()
            .split(' ')
            .map(|text| text.parse().unwrap())
            .collect();
        let [seed, num_rows, width, leaves, depth_max, leaf_rows] = numbers[..] else {
            panic!("{numbers:?}");
        };
        let (rows, target) = table(seed as u64, num_rows, width);
        let config = CartConfig {
            bins: 256,
            leaf_rows_min: leaf_rows as u32,
            leaf_weight_min: 0.0,
            gain_min: 0.0,
            depth_max,
        };
        let value = |row: usize, feature: usize| rows[row][feature];
        let data = Binned::new(num_rows, width, config.bins, value);
        let grown = grow(&data, value, &target, &vec![1.0; num_rows], leaves, &config, &[]);
        let mut ours = Vec::new();
        outline(&grown.nodes_with(leaves), 0, &mut ours);
        let theirs: Vec<(&str, f64)> = lines
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(what, number)| (what, number.parse().unwrap()))
            .collect();
        assert_eq!(ours.len(), theirs.len(), "table {seed}");
        for ((what, number), (other, theirs)) in ours.iter().zip(theirs) {
            assert_eq!(what, other, "table {seed}");
            assert!(
                (number - theirs).abs() < 1e-5,
                "table {seed}, {what}: {number}, scikit-learn has {theirs}"
            );
        }
    }
}
