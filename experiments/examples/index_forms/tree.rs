//! Trees in place of the formula.

use std::collections::BTreeMap;
use std::sync::Arc;

use pleach_baselines::dealing::{Formula, INDEX_FEATURES};
use pleach_distill::cart::{Binned, CartConfig, grow};
use pleach_experiments::index_search::by_hand;
use pleach_scheduler::tree::Node;

use crate::judge::Held;
use crate::shaped::{Form, NUM_FEATURES, Row, recorded};

const LEAVES: [usize; 5] = [8, 16, 32, 64, 128];
/// Inside a leaf least attained service comes first.
const TIE: f64 = -1e-4;

/// Trees of all sizes fitted to the formula's scores, alone and over least attained service.
pub fn trees(formula: &Formula) -> Result<Vec<(String, Form)>, String> {
    let nothing = Formula {
        weights: BTreeMap::from([("service".to_string(), TIE)]),
        ..formula.clone()
    };
    let least_served = Formula {
        weights: by_hand().weights,
        ..formula.clone()
    };
    let mut found = fitted("tree", formula, &nothing)?;
    found.extend(fitted("las and tree", formula, &least_served)?);
    Ok(found)
}

/// Trees that say what comes to the score of `base`.
fn fitted(name: &str, formula: &Formula, base: &Formula) -> Result<Vec<(String, Form)>, String> {
    let lists = Held::draw("trees/rows", 4);
    let mut actor = Form::of(formula);
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for _round in 0..3 {
        let seen = recorded(&actor, &lists)?;
        rows.extend(
            seen.into_iter()
                .map(|row| (row, sum(formula, &row) - sum(base, &row))),
        );
        let value = |row: usize, feature: usize| rows[row].0[feature] as f32;
        let binned = Binned::new(rows.len(), NUM_FEATURES, 255, value);
        let target: Vec<f32> = rows.iter().map(|row| row.1 as f32).collect();
        let (weight, most) = (vec![1.0; rows.len()], LEAVES[LEAVES.len() - 1]);
        let grown = grow(
            &binned,
            value,
            &target,
            &weight,
            most,
            &CartConfig::default(),
            &[],
        );
        let of_size = |leaves| {
            (
                format!("{name}, {leaves} leaves"),
                form(base, grown.nodes_with(leaves)),
            )
        };
        found = LEAVES.map(of_size).into();
        actor = form(base, grown.nodes_with(64));
    }
    Ok(found)
}

/// A formula's score of a row.
fn sum(formula: &Formula, row: &Row) -> f64 {
    let terms = INDEX_FEATURES.iter().zip(row);
    let weight = |name: &str| formula.weights.get(name).copied().unwrap_or(0.0);
    terms.map(|(feature, value)| weight(feature.name) * value).sum()
}

fn form(base: &Formula, nodes: Vec<Node>) -> Form {
    let extra = move |row: &Row| {
        let mut at = 0;
        loop {
            match &nodes[at] {
                Node::Leaf { score, .. } => return f64::from(*score),
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let goes_left = row[usize::from(*feature)] as f32 <= *threshold;
                    at = if goes_left { *left } else { *right } as usize;
                }
            }
        }
    };
    Form {
        formula: base.clone(),
        extra: Arc::new(extra),
    }
}
