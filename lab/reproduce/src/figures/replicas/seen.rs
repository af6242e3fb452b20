//! What the law is worth where nothing of a kind was fitted.

use std::collections::BTreeMap;

use super::fit::Fitted;
use super::measured::{Errors, Measured, source};
use super::rows::Held;

/// Rows to judge by that a value needs to be left out once.
const ROWS_MIN: usize = 25;
/// Parts into which set-ups fall; each is judged by a fit to the others.
const PARTS: usize = 4;

/// A value of a kind, by which rows are left out of a fit.
type Of = fn(&Measured, &Held) -> String;

/// Kinds that are left out, with the value of a row.
const KINDS: [(&str, Of); 4] = [
    ("model", |measured, held| measured.rows[held.row].model.clone()),
    ("GPU", |measured, held| measured.rows[held.row].gpu.clone()),
    ("source", |measured, held| {
        source(&measured.rows[held.row]).to_string()
    }),
    ("set-up", set_up),
];

/// The part of a set-up: model, GPU type and number, numbers, engine.
fn set_up(measured: &Measured, held: &Held) -> String {
    let (row, server) = (&measured.rows[held.row], &held.server);
    let name = format!(
        "{} {} {} {} {}",
        row.model, row.gpu, server.num_gpus, row.precision, server.engine.name
    );
    let sum: usize = name
        .bytes()
        .enumerate()
        .map(|(place, byte)| (place + 1) * usize::from(byte))
        .sum();
    format!("part {}", sum % PARTS)
}

/// Errors of rows to judge by, of each value that the fit has not seen, and of all values of a kind.
pub(super) fn unseen(measured: &Measured, is_smoke: bool) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    let [fit_by, judge_by] = ["calibrate", "judge"].map(|half| measured.half(half));
    for (kind, of) in KINDS {
        let mut rows = BTreeMap::<String, Vec<&Held>>::new();
        for held in &judge_by {
            rows.entry(of(measured, held)).or_default().push(held);
        }
        rows.retain(|_, rows| rows.len() >= ROWS_MIN);
        let mut all = Errors::default();
        for (value, rows) in rows.iter().take(if is_smoke { 1 } else { usize::MAX }) {
            let others = fit_by.iter().copied().filter(|held| of(measured, held) != *value);
            let others: Vec<&Held> = others.collect();
            if others.is_empty() {
                continue;
            }
            let (fitted, mut own) = (Fitted::of(&others), Errors::default());
            for held in rows {
                let error = fitted.error(held);
                own.add(error);
                all.add(error);
            }
            lines.push(
                [format!("{kind} {value}")]
                    .into_iter()
                    .chain(own.cells())
                    .collect(),
            );
        }
        lines.push([format!("each {kind}")].into_iter().chain(all.cells()).collect());
    }
    lines
}
