//! Fits a tree to a table in a file, for comparisons with other learners: `fit_table TABLE ROWS FEATURES LEAVES DEPTH LEAF_ROWS`.
//!
//! The table holds 32-bit floats, little-endian: all features of the first row, of the second, ..., then the targets. Prints JSON:
//! the processor time of binning and growth, s (on Linux; else null), and the nodes of the tree.

use std::error::Error;
use std::fs;

use pleach_distill::cart::{Binned, CartConfig, grow};
use pleach_scheduler::tree::Node;
use serde_json::{Value, json};

/// Ticks of the processor clock in `/proc` in a second: `USER_HZ`, which is 100 on every platform that Linux runs on with Rust.
const TICKS_PER_S: f64 = 100.0;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [table, numbers @ ..] = args.as_slice() else {
        return Err("usage: fit_table TABLE ROWS FEATURES LEAVES DEPTH LEAF_ROWS".into());
    };
    let numbers: Vec<usize> = numbers
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let [num_rows, num_features, leaves, depth_max, leaf_rows] = numbers[..] else {
        return Err("usage: fit_table TABLE ROWS FEATURES LEAVES DEPTH LEAF_ROWS".into());
    };
    let bytes = fs::read(table)?;
    let values: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .collect();
    if values.len() != num_rows * (num_features + 1) {
        return Err(format!(
            "{table} holds {} numbers, not {num_rows} x {num_features} and {num_rows}",
            values.len()
        )
        .into());
    }
    let (features, target) = values.split_at(num_rows * num_features);
    let config = CartConfig {
        bins: 256,
        leaf_rows_min: u32::try_from(leaf_rows)?,
        leaf_weight_min: 0.0,
        gain_min: 0.0,
        depth_max,
    };
    config.validate()?;
    let value = |row: usize, feature: usize| features[row * num_features + feature];
    let before = processor_s();
    let data = Binned::new(num_rows, num_features, config.bins, value);
    let grown = grow(&data, value, target, &vec![1.0; num_rows], leaves, &config, &[]);
    let spent_s = before.zip(processor_s()).map(|(before, after)| after - before);
    let nodes: Vec<Value> = grown
        .nodes_with(leaves)
        .iter()
        .map(|node| match node {
            Node::Split {
                feature,
                threshold,
                left,
                right,
            } => {
                json!({"feature": feature, "threshold": threshold, "left": left, "right": right})
            }
            Node::Leaf { score, samples, .. } => json!({"score": score, "samples": samples}),
        })
        .collect();
    println!("{}", json!({"processor_s": spent_s, "nodes": nodes}));
    Ok(())
}

/// Processor time of this process so far, user and system.
fn processor_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may hold spaces; after it come the fields from the third on.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_S)
}
