//! The columns of a stage that needs a context: a row for each context, one for holding the stage back, one for giving its frame up.

use pleach_scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, RowKind, Scale, View};

use super::policy::Decision;
use pleach_serving::columns::{column, kind};

const KINDS: [RowKind; 3] = [
    kind("join", "put the stage into this context's queue"),
    kind("hold", "hold the stage back until a budget ahead of its schedule"),
    kind("give-up", "end the frame without the rest"),
];
const JOIN: Among = Among::Varies(Kinds::of(&[0]));
const ALL: Among = Among::Varies(Kinds::of(&[0, 1, 2]));

const ONE: Scale = Scale::Linear(1.0);
const TEN: Scale = Scale::Linear(10.0);
const COUNT: Scale = Scale::Log(3.0);
use Group::{Context, Row};

/// **Lines are only ever added at the end.**
#[rustfmt::skip]
const FEATURES: [Feature; 16] = [
    column(Row, Among::Flag(0), "is_join", "", 1.0, ONE, "1: the stage joins a queue."),
    column(Row, Among::Flag(1), "is_hold", "", 1.0, ONE, "1: the stage is held back."),
    column(Row, Among::Flag(2), "is_give_up", "", 1.0, ONE, "1: the frame is given up."),
    column(Row, JOIN, "running_stages", "", 1e3, COUNT, "Stages that run in the context."),
    column(Row, JOIN, "waiting_stages", "", 1e3, COUNT, "Stages in its queue."),
    column(Row, JOIN, "end_share", "", 10.0, TEN,
        "Believed time of the stage's end there, as if one ran at a time, over that left to its own deadline; above 1: late."),
    column(Row, JOIN, "occupied_share", "", 10.0, TEN, "Its time there while all streams are busy, over its budget."),
    column(Context, ALL, "left_share", "", 1.0, ONE, "Time left of the frame over its period."),
    column(Context, ALL, "slack_share", "", 10.0, TEN,
        "Time left of the frame over the least time of the stage and those after it; below 1: late."),
    column(Context, ALL, "own_left_share", "", 1.0, ONE, "Time left to the stage's own deadline over the period."),
    column(Context, ALL, "budget_share", "", 1.0, ONE, "Its budget over the period."),
    column(Context, ALL, "is_high", "", 1.0, ONE, "1: it goes before other stages."),
    column(Context, ALL, "is_last", "", 1.0, ONE, "1: no stage comes after it."),
    column(Context, ALL, "stage", "", 100.0, TEN, "Number of the stage, from 0."),
    column(Context, ALL, "task_share", "", 1.0, ONE, "Number of the task over all tasks."),
    column(Context, ALL, "held_stages", "", 1e3, COUNT, "Stages that run or wait anywhere."),
];

/// Numbers of a row.
pub(super) const ROW_WIDTH: usize = PLACING_1.num_row;
/// Numbers around it.
pub(super) const CONTEXT_WIDTH: usize = PLACING_1.num_context;

/// All columns.
pub const PLACING_1: View = View::of("placing-1", &FEATURES, FEATURES.len());
/// What policies read that place stages.
pub static SCHEMA: FeatureSchema = FeatureSchema::new("placing", &KINDS, &FEATURES, &[], &[PLACING_1]);

/// Writes the rows of a decision among so many tasks: contexts in their order, holding back, giving up.
pub(super) fn write(decision: &Decision<'_>, num_tasks: usize, rows: &mut [f32], context: &mut [f32]) {
    let held = decision.held;
    for (place, row) in rows.chunks_mut(ROW_WIDTH).enumerate() {
        let mut raw = [0.0; ROW_WIDTH];
        if place < held.len() {
            let left_us = decision.virtual_due_us.saturating_sub(decision.now_us).max(1);
            let end_us = decision.finish_us(place).saturating_sub(decision.now_us);
            raw = [
                1.0,
                0.0,
                0.0,
                f64::from(held[place].running),
                f64::from(held[place].waiting),
                end_us as f64 / left_us as f64,
                decision.occupied_us[place] as f64 / decision.budget_us.max(1) as f64,
            ];
        } else {
            raw[1 + place - held.len()] = 1.0;
        }
        for (value, (feature, raw)) in row.iter_mut().zip(FEATURES.iter().zip(raw)) {
            *value = feature.encode(raw as f32);
        }
    }
    let period_us = (decision.due_us - decision.release_us) as f64;
    let left = |due_us: u64| due_us.saturating_sub(decision.now_us) as f64;
    let is = |truth: bool| f64::from(u8::from(truth));
    let raw = [
        left(decision.due_us) / period_us,
        left(decision.due_us) / decision.rest_us.max(1) as f64,
        left(decision.virtual_due_us) / period_us,
        decision.budget_us as f64 / period_us,
        is(decision.is_high),
        is(decision.is_last),
        decision.stage as f64,
        decision.task as f64 / num_tasks as f64,
        held.iter()
            .map(|held| f64::from(held.running + held.waiting))
            .sum(),
    ];
    for (value, (feature, raw)) in context.iter_mut().zip(FEATURES[ROW_WIDTH..].iter().zip(raw)) {
        *value = feature.encode(raw as f32);
    }
}
