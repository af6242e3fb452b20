//! Trees that deal: the classic orders with one leaf, whose key is the order.

use pleach_dealing::deal_schema;
use pleach_distill::search::Branch;
use pleach_scheduler::tree::Tree;

use crate::error::Error;
use crate::worlds::race::{by_hand, column, nodes, split};

/// What an order weighs, as far as four columns say it: the smaller sum is dealt first. Weights are those of
/// [`OrderConfig`](pleach_dealing::OrderConfig); the last is the heaviest of the reference formula.
const ORDERS: [(&str, [(&str, f32); 4]); 5] = [
    (
        "least service",
        [
            ("service", 1.0),
            ("gang", 0.75),
            ("speed", -4.0),
            ("stays", -0.405),
        ],
    ),
    (
        "shortest rest",
        [("rest", 1.0), ("gang", 1.0), ("speed", -4.0), ("stays", -0.405)],
    ),
    (
        "believed cost",
        [
            ("belief", 1.0),
            ("gang", 0.75),
            ("speed", -4.0),
            ("stays", -0.405),
        ],
    ),
    (
        "best rate",
        [
            ("gang", 1.0),
            ("advantage", -1.0),
            ("speed", -4.0),
            ("stays", -0.405),
        ],
    ),
    (
        "index",
        [("service", 0.7), ("gang", 1.9), ("speed", -4.6), ("rest", 0.5)],
    ),
];

/// Each order that reads none of some columns; with and without a tier for the steps of elastic jobs that come last.
pub(super) fn starts(without: &[u16]) -> Result<Vec<Tree>, Error> {
    let schema = deal_schema();
    let is_allowed = |name: &str| !without.contains(&column(schema, name, 0.0).0);
    let mut trees = Vec::new();
    for (name, weights) in &ORDERS {
        if !weights.iter().all(|(name, _)| is_allowed(name)) {
            continue;
        }
        trees.push(by_hand(schema, name, weights, &nodes(&Branch::Leaf(0)))?);
        if is_allowed("size") {
            let root = split(schema, "size", 0.0, Branch::Leaf(1), Branch::Leaf(0));
            trees.push(by_hand(
                schema,
                &format!("{name}, growth last"),
                weights,
                &nodes(&root),
            )?);
        }
    }
    Ok(trees)
}
