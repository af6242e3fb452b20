//! The columns of a decision: a row for each stage and number of executors that are worth choosing, one for choosing none.

use pleach_scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, RowKind, Scale, View};
use pleach_serving::columns::{column, kind};

const KINDS: [RowKind; 2] = [
    kind("start", "send executors to a stage"),
    kind("none", "leave all that are left to the common pool"),
];
const START: Among = Among::Varies(Kinds::of(&[0]));
const ALL: Among = Among::Varies(Kinds::of(&[0, 1]));

const ONE: Scale = Scale::Linear(1.0);
const FOUR: Scale = Scale::Linear(4.0);
const COUNT: Scale = Scale::Log(4.0);
const TIME: Scale = Scale::Log(6.0);
use Group::{Context, Row};

/// **Lines are only ever added at the end.**
#[rustfmt::skip]
const FEATURES: [Feature; 27] = [
    column(Row, Among::Flag(0), "is_start", "", 1.0, ONE, "1: executors go to a stage."),
    column(Row, Among::Flag(1), "is_none", "", 1.0, ONE, "1: none is chosen."),
    column(Row, START, "is_own", "", 1.0, ONE, "1: the stage is of the job whose executors are dealt."),
    column(Row, START, "is_runnable", "", 1.0, ONE, "1: all parents of the stage have ended."),
    column(Row, START, "sent_share", "", 1.0, ONE, "Executors that are sent over those that are free."),
    column(Row, START, "after_share", "", 1.0, ONE, "Executors of the job afterwards over all executors."),
    column(Row, START, "after_fair", "", 64.0, FOUR, "Executors of the job afterwards over an even share."),
    column(Row, START, "cap_fair", "", 64.0, FOUR,
        "The cap on the job's executors by which the row was made, in even shares."),
    column(Row, START, "cap_root", "", 64.0, FOUR,
        "The same cap in shares by the root of the work left, times the root of the number of jobs."),
    column(Row, START, "supply_share", "", 1.0, ONE, "Executors of the job before over all executors."),
    column(Row, START, "tasks_left", "", 1e6, COUNT, "Tasks of the stage that were not launched."),
    column(Row, START, "recent_ms", "ms", 1e9, TIME, "Duration of the stage's last task, at first its mean."),
    column(Row, START, "stage_work_ms", "ms", 1e12, TIME, "Work left of the stage: tasks left, each as long as the last one."),
    column(Row, START, "path_ms", "ms", 1e9, TIME, "Longest path from the stage to the end of the job by mean durations."),
    column(Row, START, "path_share", "", 1.0, ONE, "The same over the longest one of the job."),
    column(Row, START, "job_work_ms", "ms", 1e12, TIME, "Work left of the job."),
    column(Row, START, "work_share", "", 1.0, ONE, "The same over that of all jobs in the system."),
    column(Row, START, "job_tasks_left", "", 1e8, COUNT, "Tasks of the job that were not launched."),
    column(Row, START, "job_stages_left", "", 1e4, COUNT, "Stages of the job that have not ended."),
    column(Row, START, "work_each_ms", "ms", 1e12, TIME, "Work left of the job for each of its executors and the next one."),
    column(Row, START, "age_ms", "ms", 1e10, TIME, "Time since the job arrived."),
    column(Row, START, "work_rank", "", 1.0, ONE, "Share of the jobs in the system with less work left."),
    column(Row, START, "age_rank", "", 1.0, ONE, "Share of the jobs in the system that are older."),
    column(Context, ALL, "jobs", "", 1e5, COUNT, "Jobs in the system."),
    column(Context, ALL, "free_share", "", 1.0, ONE, "Executors that are dealt over all executors."),
    column(Context, ALL, "all_work_ms", "ms", 1e12, TIME, "Work left of all jobs in the system."),
    column(Context, ALL, "has_own", "", 1.0, ONE, "1: the executors are of a job that has stages to run."),
];

/// Numbers of a row.
pub(crate) const ROW_WIDTH: usize = STAGES_1.num_row;
/// Numbers around it.
pub(crate) const CONTEXT_WIDTH: usize = STAGES_1.num_context;

/// All columns.
pub const STAGES_1: View = View::of("stages-1", &FEATURES, FEATURES.len());
/// What policies read that choose stages.
pub static SCHEMA: FeatureSchema = FeatureSchema::new("stages", &KINDS, &FEATURES, &[], &[STAGES_1]);

/// Scales the numbers of a row, and appends them.
pub(crate) fn push_row(raw: [f64; ROW_WIDTH], rows: &mut Vec<f32>) {
    let features = FEATURES[..ROW_WIDTH].iter();
    rows.extend(features.zip(raw).map(|(feature, raw)| feature.encode(raw as f32)));
}

/// Scales the numbers around the rows.
pub(crate) fn context_of(raw: [f64; CONTEXT_WIDTH]) -> [f32; CONTEXT_WIDTH] {
    std::array::from_fn(|place| FEATURES[ROW_WIDTH + place].encode(raw[place] as f32))
}
