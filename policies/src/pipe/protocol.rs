//! What is said over the pipe, version 1: one JSON object a line, each way.
//!
//! We begin: `{"pleach": 1, "candidate": [{"name": "wait_s", "unit": "s"}, ...], "global": [...]}`, the columns of a candidate and of
//! the cluster with its queue (docs/features.md says what each is). The process greets with `{"pleach": 1}`. Then for every decision
//! `{"decision": 1, "now_s": 30.0, "may_hold": true, "candidates": [[...], ...], "global": [...]}`, numbers in the units of the columns,
//! candidate 0 being *hold*, and the process answers `{"index": 2}` or `{"scores": [0.1, -2, 7]}`, of which the largest wins, and
//! among equal ones the first. `decision` may be repeated in an answer and is then compared. Our side closes the pipe at the end.

use pleach_scheduler::features::{Feature, FeatureSchema, View};
use pleach_scheduler::policy::DecisionPoint;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::process::shown;

/// What both sides must speak.
const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Greeting {
    pleach: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    decision: Option<u64>,
    index: Option<usize>,
    scores: Option<Vec<f32>>,
}

#[derive(Serialize)]
struct Question {
    decision: u64,
    now_s: f64,
    may_hold: bool,
    candidates: Vec<Vec<f32>>,
    global: Vec<f32>,
}

/// The columns that are said: the newest view, which is frozen.
fn view() -> &'static View {
    let views = FeatureSchema::current().views;
    &views[views.len() - 1]
}

fn row_columns() -> impl Iterator<Item = &'static Feature> {
    FeatureSchema::current().of_rows().take(view().num_row)
}

fn global_columns() -> impl Iterator<Item = &'static Feature> {
    FeatureSchema::current().of_context().take(view().num_context)
}

/// Our first line.
pub(super) fn hello() -> String {
    let column = |feature: &Feature| json!({"name": feature.name, "unit": feature.unit});
    json!({
        "pleach": VERSION,
        "candidate": row_columns().map(column).collect::<Vec<_>>(),
        "global": global_columns().map(column).collect::<Vec<_>>(),
    })
    .to_string()
}

/// Reads the greeting.
///
/// # Errors
/// What it says instead, in words.
pub(super) fn greeted(line: &str) -> Result<(), String> {
    match serde_json::from_str::<Greeting>(line) {
        Ok(Greeting { pleach: VERSION }) => Ok(()),
        Ok(Greeting { pleach }) => Err(format!("is of version {pleach}: allowed is {VERSION}")),
        Err(_) => Err(format!(
            "is `{}`: allowed is {{\"pleach\": {VERSION}}}",
            shown(line)
        )),
    }
}

/// The line of a decision.
pub(super) fn question(number: u64, point: &DecisionPoint<'_>) -> String {
    let seen = point.observation;
    // Numbers in units, as near as their scaled form is.
    let raw = |(scaled, feature): (&f32, &Feature)| feature.scale.invert(*scaled) as f32;
    let row = |index: usize| seen.row(index).iter().zip(row_columns()).map(raw).collect();
    let question = Question {
        decision: number,
        now_s: point.cluster.now().as_secs_f64(),
        may_hold: seen.mask.first().copied().unwrap_or(true),
        candidates: (0..point.candidates.len()).map(row).collect(),
        global: seen.global.iter().zip(global_columns()).map(raw).collect(),
    };
    serde_json::to_string(&question).unwrap_or_default()
}

/// Reads an answer into scores, one for each candidate.
///
/// # Errors
/// What it says instead, in words.
pub(super) fn answer(line: &str, (number, may_hold): (u64, bool), scores: &mut [f32]) -> Result<(), String> {
    let last = scores.len().saturating_sub(1);
    let first = usize::from(!may_hold);
    let refuse = || {
        Err(format!(
            "answered `{}`: allowed is {{\"index\": {first} to {last}}} or {{\"scores\": [{} finite numbers]}}",
            shown(line),
            scores.len()
        ))
    };
    let Ok(answer) = serde_json::from_str::<Answer>(line) else {
        return refuse();
    };
    if let Some(other) = answer.decision.filter(|decision| *decision != number) {
        return Err(format!(
            "answered decision {other}: one line is written for each line that is read"
        ));
    }
    match (answer.index, answer.scores) {
        (Some(index), None) if (first..=last).contains(&index) => {
            scores.fill(0.0);
            scores[index] = 1.0;
            Ok(())
        }
        (None, Some(found)) if found.len() == scores.len() && found.iter().all(|score| score.is_finite()) => {
            scores.copy_from_slice(&found);
            Ok(())
        }
        _ => refuse(),
    }
}
