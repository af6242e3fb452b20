//! The columns of a layer decision: a row for each request that waits.

use pleach_scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, RowKind, Scale, View};

use crate::layers::policy::{Queue, Waiting};
use pleach_serving::columns;

const KINDS: [RowKind; 1] = [columns::kind("run", "run the request's next layer")];
const RUN: Among = Among::Varies(Kinds::of(&[0]));

/// A column: name, range, scale, meaning.
const fn column(
    group: Group,
    name: &'static str,
    [min, max]: [f32; 2],
    scale: Scale,
    doc: &'static str,
) -> Feature {
    Feature {
        min,
        ..columns::column(group, RUN, name, "", max, scale, doc)
    }
}

const ONE: Scale = Scale::Linear(1.0);
use Group::{Context, Row};

/// **Lines are only ever added at the end.** Times are given over means of models, so that one tree may serve fast and slow ones.
#[rustfmt::skip]
const FEATURES: [Feature; 11] = [
    column(Row, "rest", [0.0, 1e2], Scale::Log(2.0),
        "Believed rest, densities of layers that ran counted, over the mean isolated time of those that wait."),
    column(Row, "rest_share", [0.0, 10.0], Scale::Log(1.0), "Believed rest over the request's own isolated mean."),
    column(Row, "slack_share", [-1.0, 1.0], ONE,
        "Time to the deadline without the believed rest, over the whole target; at least -1: late by as much as the target."),
    column(Row, "slack", [0.0, 1e3], Scale::Log(3.0),
        "The same over the mean isolated time of those that wait, 0 where it is late."),
    column(Row, "gamma", [0.0, 4.0], Scale::Linear(4.0), "Density of the layers that ran over their mean; 1 before any."),
    column(Row, "layers_ran", [0.0, 1e3], Scale::Log(3.0), "Layers that ran."),
    column(Row, "idle", [0.0, 1e3], Scale::Log(3.0), "Time since its last layer, or its arrival, over its isolated mean."),
    column(Row, "wait", [0.0, 1e4], Scale::Log(4.0), "Time since its arrival over its isolated mean."),
    column(Row, "priority", [0.0, 9.0], Scale::Linear(9.0), "Its priority."),
    column(Context, "requests", [0.0, 1e4], Scale::Log(4.0), "Requests that wait or run."),
    column(Context, "late_share", [0.0, 1.0], ONE, "Share of those that wait whose slack is used up."),
];

/// Numbers of a row and of the context.
pub(crate) const ROW_WIDTH: usize = LAYERS_1.num_row;

/// All columns.
pub const LAYERS_1: View = View::of("layers-1", &FEATURES, FEATURES.len());
/// What policies that choose layers read.
pub static SCHEMA: FeatureSchema = FeatureSchema::new("layers", &KINDS, &FEATURES, &[], &[LAYERS_1]);

/// Writes the rows and the context.
pub(crate) fn write(queue: &Queue<'_>, rows: &mut Vec<f32>, context: &mut Vec<f32>) {
    rows.clear();
    context.clear();
    let num = queue.waiting.len() as f64;
    let mean_us = queue
        .waiting
        .iter()
        .map(|row| row.pattern_isolated_us)
        .sum::<f64>()
        / num;
    let mut num_late = 0.0;
    for waiting in queue.waiting.iter() {
        let raw = of_row(waiting, queue.now_us, mean_us);
        num_late += f64::from(u8::from(raw[2] < 0.0));
        let columns = FEATURES.iter().zip(raw);
        rows.extend(columns.map(|(feature, raw)| feature.encode(raw as f32)));
    }
    let raw = [queue.num_requests as f64, num_late / num];
    let columns = FEATURES[ROW_WIDTH..].iter().zip(raw);
    context.extend(columns.map(|(feature, raw)| feature.encode(raw as f32)));
}

fn of_row(row: &Waiting, now_us: u64, mean_us: f64) -> [f64; ROW_WIDTH] {
    let rest_us = row.gamma * row.pattern_rest_us;
    let slack_us = row.deadline_us as f64 - now_us as f64 - rest_us;
    let target_us = (row.deadline_us - row.arrival_us) as f64;
    [
        rest_us / mean_us,
        rest_us / row.pattern_isolated_us,
        slack_us / target_us,
        slack_us.max(0.0) / mean_us,
        row.gamma,
        row.ratios.len() as f64,
        row.idle_us(now_us) / row.pattern_isolated_us,
        (now_us - row.arrival_us) as f64 / row.pattern_isolated_us,
        f64::from(row.priority),
    ]
}
