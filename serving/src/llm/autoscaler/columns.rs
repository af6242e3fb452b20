//! The columns of an autoscaler's decision: a row for each change of the number of replicas, fewest first.

use pleach_scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, RowKind, Scale, View};

use super::demand::{Demand, Yield};
use crate::columns::{column, kind};

const KINDS: [RowKind; 3] = [
    kind("fewer", "take replicas back"),
    kind("same", "leave the number as it is"),
    kind("more", "grant replicas"),
];
const FEWER: Among = Among::Varies(Kinds::of(&[0]));
const MORE: Among = Among::Varies(Kinds::of(&[2]));
const ALL: Among = Among::Varies(Kinds::of(&[0, 1, 2]));

/// Most replicas by which a decision changes their number. *Assumed*: a gang of four.
const CHANGE_MAX: usize = 4;
/// Rows at most.
pub(super) const ROWS_MAX: usize = 2 * CHANGE_MAX + 1;
/// The usual rate and the forecast are those so far on: a model is loaded in 60 s. *Assumed.*
const AHEAD_S: f64 = 75.0;
/// What is left then of the ratio to the usual rate. *Assumed*: four parts in five a minute.
const KEEP: f64 = 0.75;
/// The column `missed_share` is the number of misses over this share of the requests that have come.
const MISSES: f64 = 0.001;

const ONE: Scale = Scale::Linear(1.0);
const TEN: Scale = Scale::Linear(10.0);
use Group::{Context, Row};

/// **Lines are only ever added at the end.** A load is counted in replicas' worth.
#[rustfmt::skip]
const FEATURES: [Feature; 24] = [
    column(Row, Among::Flag(0), "is_fewer", "", 1.0, ONE, "1: replicas are taken back."),
    column(Row, Among::Flag(1), "is_same", "", 1.0, ONE, "1: the number stays."),
    column(Row, Among::Flag(2), "is_more", "", 1.0, ONE, "1: replicas are granted."),
    column(Row, FEWER, "leaving", "", 4.0, TEN, "Replicas that are taken back."),
    column(Row, MORE, "coming", "", 4.0, TEN, "Replicas that are granted."),
    column(Row, ALL, "replicas", "", 1e4, Scale::Log(4.0), "Replicas that take requests or will, then."),
    column(Row, ALL, "load_share", "", 10.0, ONE, "Moving average of the rate and the backlog over what they serve."),
    column(Row, ALL, "spare_roots", "", 10.0, TEN, "What they serve beyond that load, over its root."),
    column(Row, ALL, "peak_share", "", 10.0, ONE, "The highest load of the last five minutes over what they serve."),
    column(Row, ALL, "usual_share", "", 10.0, ONE, "The load that is usual 75 s on over what they serve."),
    column(Row, ALL, "forecast_share", "", 10.0, ONE, "The load that comes back to it over what they serve."),
    column(Row, ALL, "running_each", "", 1e4, Scale::Log(3.0), "Requests of all batches over them."),
    column(Row, FEWER, "gained_gpus", "GPU", 1e4, Scale::Log(4.0), "GPUs on which the smallest jobs that wait start then."),
    column(Row, MORE, "stopped_gpus", "GPU", 1e4, Scale::Log(4.0), "GPUs of jobs that are stopped for it."),
    column(Row, MORE, "stopped_gpu_s", "GPU s", 1e7, Scale::Log(7.0), "What their stop loses, restarts counted."),
    column(Row, ALL, "idle_gpus", "GPU", 1e4, Scale::Log(4.0), "GPUs that nobody holds then."),
    column(Context, ALL, "open_share", "", 10.0, ONE, "The load over what replicas serve that take requests now."),
    column(Context, ALL, "backlog_s", "s", 1e4, Scale::Log(4.0), "Time in which they serve what waits."),
    column(Context, ALL, "trend", "", 10.0, ONE, "The moving average over that of five minutes."),
    column(Context, ALL, "loading", "", 1e4, Scale::Log(4.0), "Replicas whose model is being loaded."),
    column(Context, ALL, "since_more_s", "s", 1e5, Scale::Log(5.0), "Time since one was granted."),
    column(Context, ALL, "since_fewer_s", "s", 1e5, Scale::Log(5.0), "Time since one was taken back."),
    column(Context, ALL, "hour", "h", 24.0, TEN, "Time of the day."),
    column(Context, ALL, "missed_share", "", 1e3, Scale::Log(3.0), "Misses so far over a thousandth of what has come."),
];

/// Numbers of a row.
pub(super) const ROW_WIDTH: usize = AUTOSCALING_1.num_row;

/// All columns.
pub const AUTOSCALING_1: View = View::of("autoscaling-1", &FEATURES, FEATURES.len());
/// What autoscalers that score read.
pub static AUTOSCALING: FeatureSchema =
    FeatureSchema::new("autoscaling", &KINDS, &FEATURES, &[], &[AUTOSCALING_1]);

/// What is believed of the load, in replicas' worth, and when the number changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Belief {
    /// Moving average with the backlog.
    pub load: f64,
    /// The rate alone, 1/s.
    pub rate_per_s: f64,
    /// Its highest of the last minutes.
    pub peak: f64,
    /// The moving average over a slow one.
    pub trend: f64,
    /// Time since replicas were granted, and taken back, s.
    pub since_s: [f64; 2],
}

/// Numbers of replicas that are offered: up to [`CHANGE_MAX`] fewer or more, one at least.
pub(super) fn offered(demand: &Demand<'_>) -> std::ops::RangeInclusive<usize> {
    let up = demand.up().max(1);
    let most = demand.most.max(1);
    up.saturating_sub(CHANGE_MAX).clamp(1, most)..=(up + CHANGE_MAX).clamp(1, most)
}

/// Writes the rows of what is offered, and the context. A replica serves `capacity_per_s`.
pub(super) fn write(
    demand: &Demand<'_>,
    belief: &Belief,
    capacity_per_s: f64,
    (rows, context): (&mut Vec<f32>, &mut Vec<f32>),
) {
    rows.clear();
    context.clear();
    let usual = demand
        .usual_per_s_at(demand.now_s + AHEAD_S)
        .unwrap_or(belief.rate_per_s);
    let forecast = demand.forecast_per_s(belief.rate_per_s, AHEAD_S, KEEP);
    let loads = [
        belief.load,
        belief.peak,
        usual / capacity_per_s,
        forecast / capacity_per_s,
    ];
    let encode = |(feature, raw): (&Feature, f64)| feature.encode(raw as f32);
    for replicas in offered(demand) {
        let raw = of_number(demand, replicas, loads);
        rows.extend(FEATURES.iter().zip(raw).map(encode));
    }
    let load = demand.load;
    let serve_per_s = capacity_per_s * load.open.max(1) as f64;
    let raw = [
        loads[0] / load.open.max(1) as f64,
        load.waiting as f64 / serve_per_s,
        belief.trend,
        load.loading as f64,
        belief.since_s[0],
        belief.since_s[1],
        (demand.now_s / 3_600.0).rem_euclid(24.0),
        load.missed as f64 / (MISSES * load.arrived.max(1) as f64),
    ];
    context.extend(FEATURES[ROW_WIDTH..].iter().zip(raw).map(encode));
}

fn of_number(
    demand: &Demand<'_>,
    replicas: usize,
    [load, peak, usual, forecast]: [f64; 4],
) -> [f64; ROW_WIDTH] {
    let (up, each) = (demand.up(), replicas as f64);
    let (leaving, coming) = (up.saturating_sub(replicas), replicas.saturating_sub(up));
    let is = |truth: bool| f64::from(u8::from(truth));
    let gpus = demand.replica_gpus;
    let free = demand.beside.idle_gpus + leaving * gpus;
    let gained = if leaving > 0 && demand.beside.waiting_gpus > 0 {
        free - free % demand.beside.waiting_gpus
    } else {
        0
    };
    // Those that were to leave are kept first, then idle GPUs are taken.
    let needed = coming.saturating_sub(demand.load.draining) * gpus;
    let stopped = stopped(
        demand.beside.yields,
        needed.saturating_sub(demand.beside.idle_gpus),
    );
    let left_over = (free + stopped.gpus).saturating_sub(gained + needed);
    [
        is(leaving > 0),
        is(leaving == 0 && coming == 0),
        is(coming > 0),
        leaving as f64,
        coming as f64,
        each,
        load / each,
        (each - load).max(0.0) / load.max(0.01).sqrt(),
        peak / each,
        usual / each,
        forecast / each,
        demand.load.running as f64 / each,
        gained as f64,
        stopped.gpus as f64,
        stopped.loss_gpu_s,
        left_over as f64,
    ]
}

/// All jobs that are stopped for so many GPUs.
fn stopped(yields: &[Yield], gpus: usize) -> Yield {
    let mut sum = Yield {
        gpus: 0,
        loss_gpu_s: 0.0,
    };
    for one in yields {
        if sum.gpus >= gpus {
            break;
        }
        sum.gpus += one.gpus;
        sum.loss_gpu_s += one.loss_gpu_s;
    }
    sum
}
