//! The columns of a dispatching decision: a row for each queue and configuration that fits now, one for dropping the
//! first request of each queue where that is allowed, and one for waiting.

use pleach_scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, RowKind, Scale, View};

use super::app::{Step, Work};
use super::fronts::cheapest;
use super::platform::{Late, Placing};
use super::profile::Configuration;
use super::state::State;
use crate::columns::{column, kind};

const KINDS: [RowKind; 3] = [
    kind("run", "run a batch of this queue in this configuration"),
    kind("shed", "drop the first request of this queue"),
    kind("wait", "start nothing more until something happens"),
];
const RUN: Among = Among::Varies(Kinds::of(&[0]));
const QUEUE: Among = Among::Varies(Kinds::of(&[0, 1]));
const ALL: Among = Among::Varies(Kinds::of(&[0, 1, 2]));

const ONE: Scale = Scale::Linear(1.0);
const TEN: Scale = Scale::Linear(10.0);
use Group::{Context, Row};

/// **Lines are only ever added at the end.**
#[rustfmt::skip]
const FEATURES: [Feature; 20] = [
    column(Row, Among::Flag(0), "is_run", "", 1.0, ONE, "1: a batch runs."),
    column(Row, Among::Flag(1), "is_shed", "", 1.0, ONE, "1: the first request of the queue is dropped."),
    column(Row, Among::Flag(2), "is_wait", "", 1.0, ONE, "1: nothing more is started now."),
    column(Row, QUEUE, "slack_share", "", 10.0, TEN, "Time left of the first request over its fastest way on."),
    column(Row, QUEUE, "left_share", "", 1.0, ONE, "Time left of the first request over its whole target."),
    column(Row, QUEUE, "rest_share", "", 1.0, ONE, "Part of its work that is to come, by reference latencies."),
    column(Row, QUEUE, "rest_s", "s", 10.0, TEN, "Its fastest way on."),
    column(Row, QUEUE, "queue_requests", "", 1e4, Scale::Log(4.0), "Requests of the queue."),
    column(Row, RUN, "batch", "", 64.0, TEN, "Requests that run."),
    column(Row, RUN, "batch_share", "", 1.0, ONE, "They over those of the queue."),
    column(Row, RUN, "latency_share", "", 10.0, TEN, "Latency over the group's share of the time left."),
    column(Row, RUN, "end_share", "", 10.0, TEN, "Latency and the fastest way from there over the time left; above 1: late."),
    column(Row, RUN, "slices", "", 7.0, TEN, "Slices held."),
    column(Row, RUN, "slice_s", "s", 100.0, TEN, "Slices times latency of a request."),
    column(Row, RUN, "cost_share", "", 10.0, TEN, "Cost of a request over the least that the function has for one."),
    column(Row, RUN, "is_in_time", "", 1.0, ONE, "1: a way through the group is within its share of the time left."),
    column(Row, RUN, "is_warm", "", 1.0, ONE, "1: a container is warm there."),
    column(Row, RUN, "is_local", "", 1.0, ONE, "1: the input of the first request lies there, or there is none."),
    column(Context, ALL, "free_share", "", 1.0, ONE, "Part of all slices that is free."),
    column(Context, ALL, "waiting_per_slice", "", 100.0, TEN, "Requests that wait over all slices."),
];

/// Numbers of a row.
pub(crate) const ROW_WIDTH: usize = DISPATCHING_1.num_row;

/// All columns.
pub const DISPATCHING_1: View = View::of("dispatching-1", &FEATURES, FEATURES.len());
/// What policies that dispatch read.
pub static SCHEMA: FeatureSchema =
    FeatureSchema::new("dispatching", &KINDS, &FEATURES, &[], &[DISPATCHING_1]);

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Choice {
    Run {
        step: usize,
        k: Configuration,
        node: usize,
    },
    Shed(usize),
    Wait,
}

impl Choice {
    /// Does it. False where nothing more is started now.
    pub fn take(self, state: &mut State<'_>) -> bool {
        match self {
            Choice::Run { step, k, node } => state.dispatch(step, &k, node),
            Choice::Shed(step) => {
                state.shed(step);
            }
            Choice::Wait => return false,
        }
        true
    }
}

/// Of each function, slices by slices: the cheapest cores for each batch, batches ascending.
pub(super) type Short = Vec<Vec<Vec<Configuration>>>;

pub(super) fn short(work: &Work) -> Short {
    let of_function = |function: &super::Function| {
        let all = function.configurations();
        let most = all.iter().map(|k| k.slices).max().unwrap_or(0);
        let of_slices = (0..=most).map(|slices| {
            let mut kept: Vec<Configuration> = all.iter().filter(|k| k.slices == slices).copied().collect();
            kept.sort_by(|one, other| {
                one.batch
                    .cmp(&other.batch)
                    .then(one.usd().total_cmp(&other.usd()))
            });
            kept.dedup_by_key(|k| k.batch);
            kept
        });
        of_slices.filter(|kept| !kept.is_empty()).collect()
    };
    work.functions.iter().map(of_function).collect()
}

/// Rows at most: of each queue one request and a full batch for each number of slices, and dropping; and waiting.
pub(super) fn rows_max(work: &Work, short: &Short) -> usize {
    let of_step = |step: &Step| 2 * short[step.function].len() + 1;
    work.steps.iter().map(of_step).sum::<usize>() + 1
}

/// Rows, context and what the rows stand for.
pub(super) struct Table {
    pub rows: Vec<f32>,
    pub context: Vec<f32>,
    pub choices: Vec<Choice>,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            rows: Vec::new(),
            context: vec![0.0; FEATURES.len() - ROW_WIDTH],
            choices: Vec::new(),
        }
    }

    fn push(&mut self, choice: Choice, raw: [f64; ROW_WIDTH]) {
        self.choices.push(choice);
        let columns = FEATURES.iter().zip(raw);
        self.rows
            .extend(columns.map(|(feature, raw)| feature.encode(raw as f32)));
    }

    /// Writes all that may be done now; nothing where only waiting is left.
    pub(super) fn write(&mut self, state: &State<'_>, short: &Short) {
        self.rows.clear();
        self.choices.clear();
        let mut waiting = 0;
        for step in 0..state.queues().len() {
            let num = state.queues()[step].waiting.len();
            waiting += num;
            if num > 0 {
                self.of_queue(state, short, step);
            }
        }
        if self.choices.is_empty() {
            return;
        }
        // A dispatcher that waits is asked again when a batch ends.
        if state.num_running() > 0 {
            let mut raw = [0.0; ROW_WIDTH];
            raw[2] = 1.0;
            self.push(Choice::Wait, raw);
        }
        let all = f64::from(state.platform().slices) * f64::from(state.platform().nodes);
        let raw = [f64::from(state.free().1) / all, waiting as f64 / all];
        let columns = FEATURES[ROW_WIDTH..].iter().zip(raw);
        for (place, (feature, raw)) in columns.enumerate() {
            self.context[place] = feature.encode(raw as f32);
        }
    }

    fn of_queue(&mut self, state: &State<'_>, short: &Short, step: usize) {
        let work = state.work();
        let (place, num) = (&work.steps[step], state.queues()[step].waiting.len());
        let Some(head) = state.head(step) else {
            return;
        };
        let left_us = head.deadline_us.saturating_sub(state.now_us());
        let share = |part: f64| part / (left_us.max(1) as f64);
        let target_us = (head.deadline_us - head.arrival_us).max(1) as f64;
        let mut raw = [0.0; ROW_WIDTH];
        raw[3..8].copy_from_slice(&[
            left_us as f64 / place.fastest_us as f64,
            left_us as f64 / target_us,
            place.rest_us as f64 / work.apps[place.app].base_us as f64,
            1e-6 * place.fastest_us as f64,
            num as f64,
        ]);
        let function = &work.functions[place.function];
        let fastest_us = function.fastest().latency_us;
        let after_us = place.fastest_us - fastest_us;
        let within_us = (left_us as f64 * place.group_share) as u64;
        let least_usd = short[place.function]
            .iter()
            .map(|of_slices| of_slices[0].usd())
            .fold(f64::INFINITY, f64::min);
        for of_slices in &short[place.function] {
            // One request, and as many as the queue fills.
            let filled = of_slices.iter().rposition(|k| usize::from(k.batch) <= num);
            let singles = filled.filter(|filled| *filled > 0).map(|_| 0);
            for k in filled.into_iter().chain(singles).map(|at| &of_slices[at]) {
                let Some(node) = state.place(step, k, Placing::Warm) else {
                    continue;
                };
                let latency_us = k.latency_us as f64;
                let rest = within_us.checked_sub(k.latency_us);
                let is_in_time = rest.is_some_and(|rest_us| cheapest(&place.after, rest_us).is_some());
                let is_local = head.home.is_none_or(|home| usize::from(home) == node);
                let is = |truth: bool| f64::from(u8::from(truth));
                let batch = f64::from(k.batch);
                raw[0] = 1.0;
                raw[8..].copy_from_slice(&[
                    batch,
                    batch / num as f64,
                    share(latency_us / place.group_share),
                    share(latency_us + after_us as f64),
                    f64::from(k.slices),
                    1e-6 * latency_us * f64::from(k.slices) / batch,
                    k.usd() / least_usd,
                    is(is_in_time),
                    is(state.is_warm(step, node, k)),
                    is(is_local),
                ]);
                self.push(Choice::Run { step, k: *k, node }, raw);
            }
        }
        if state.platform().late == Late::Shed {
            raw[0] = 0.0;
            raw[1] = 1.0;
            raw[8..].fill(0.0);
            self.push(Choice::Shed(step), raw);
        }
    }
}
