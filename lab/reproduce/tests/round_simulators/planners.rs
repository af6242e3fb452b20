//! The planners that users name, on the lists of Gavel's recorded runs: how far they are from the authors' programs.
//!
//! The presets replay those programs; the planners of a name are ours, and differ from them by rules that the table of
//! `lab/notes/tournament.md` names. Costs and speeds are as there: no restart costs anything, run times are known.

use pleach_baselines::rounds::Targets;
use pleach_env::{SimConfig, simulate_planner};
use pleach_scheduler::{ActionKind, JobId};
use serde_json::{Value, json};

use super::gavel::{pair_entries, pair_speeds, runs, speeds, targets, workload};
use super::recorded::{folder, number, rows};

/// Lists of at least forty jobs: on shorter ones the wait for targets is a third of all time.
const CONFIGS: [&str; 4] = [
    "g1_s40single_4x3",
    "g2_s40multi_8x3",
    "g3_s40multi_v100x16",
    "g5_m500multi_16x3",
];

/// A policy there and the planner of a name.
struct Named {
    theirs: &'static str,
    ours: &'static str,
    is_blind: bool,
    /// Range of the mean JCT of a list less theirs, %.
    off: [f64; 2],
    /// The same where what jobs wait there for their first targets is added, for policies that leave no job without one.
    left: Option<[f64; 2]>,
}

const fn named(theirs: &'static str, ours: &'static str, off: [f64; 2], left: Option<[f64; 2]>) -> Named {
    Named {
        theirs,
        ours,
        is_blind: false,
        off,
        left,
    }
}

/// **The ranges are those of the table in `lab/notes/tournament.md`.**
const PLANNERS: [Named; 11] = [
    Named {
        is_blind: true,
        ..named("max_min_fairness", "gavel-las", [-13.0, -4.0], Some([-6.0, 6.0]))
    },
    named(
        "max_min_fairness_perf",
        "gavel-las",
        [-17.0, -8.0],
        Some([0.0, 2.0]),
    ),
    named(
        "max_min_fairness_packed",
        "gavel-las-packed",
        [-10.0, -9.0],
        Some([1.0, 2.0]),
    ),
    named(
        "finish_time_fairness_perf",
        "gavel-ftf",
        [-17.0, -12.0],
        Some([-5.0, 1.0]),
    ),
    named("gandiva", "gavel-gandiva", [-17.0, -12.0], Some([-6.0, 1.0])),
    named(
        "min_total_duration_perf",
        "gavel-makespan",
        [-36.0, -11.0],
        Some([-29.0, 1.0]),
    ),
    Named {
        is_blind: true,
        ..named("fifo", "gavel-fifo", [-19.0, 11.0], None)
    },
    named("fifo_perf", "gavel-fifo", [-23.0, -8.0], None),
    named("fifo_packed", "gavel-fifo-packed", [-24.0, -23.0], None),
    named("allox", "allox", [-3.0, -2.0], None),
    named("gandiva", "gandiva", [-25.0, 45.0], None),
];

#[test]
fn planners_are_as_far_from_the_authors_programs_as_the_table_says() {
    let Some(gavel) = folder("gavel") else { return };
    let speeds = speeds(&gavel);
    let mut sim = SimConfig::default();
    sim.capabilities.grant(ActionKind::Preempt, true);
    sim.capabilities.restart_cost_s = 0.0;
    for named in PLANNERS {
        let Named { theirs, ours, .. } = named;
        let entry = pleach_baselines::find(ours).unwrap();
        let settings = if named.is_blind {
            json!({ "blind": true })
        } else {
            Value::Null
        };
        let mut sim = sim.clone();
        sim.capabilities = sim.capabilities.with_actions(entry.requirements);
        let mut num_played = 0;
        for config in CONFIGS {
            let runs = runs(&gavel, config);
            let Some(run) = runs.iter().find(|run| run.policy == theirs) else {
                continue;
            };
            num_played += 1;
            let mut workload = workload(&gavel, &speeds, run);
            workload.cluster.pairs = pair_entries(&workload, &pair_speeds(&gavel, &workload));
            let mut planner = pleach_baselines::make(ours, &settings).unwrap();
            let result = simulate_planner(&workload, &sim, planner.as_mut()).unwrap();
            let table = rows(&gavel.join(&run.name).join(&run.policy).join("jobs.csv.gz"));
            let jcts = table
                .iter()
                .map(|row| number(row, "finish_s") - number(row, "arrival_s"));
            let there_s = jcts.sum::<f64>() / table.len() as f64;
            let off = 100.0 * (result.metrics.avg_jct_s / there_s - 1.0);
            // Until targets are set with a job among them, it does not run there.
            let (tables, times_s) = targets(&gavel.join(&run.name).join(&run.policy), run);
            let waits = workload.jobs.iter().enumerate().map(|(job, spec)| {
                let has = |table: &Targets| table.keys().any(|key| key.includes(JobId(job as u32)));
                let first = tables
                    .iter()
                    .position(has)
                    .map_or(f64::NAN, |place| times_s[place]);
                first - spec.submit.as_secs_f64()
            });
            let gate = 100.0 * waits.sum::<f64>() / table.len() as f64 / there_s;
            println!("| {config} {theirs} | `{ours}` | {off:+.1} % | {gate:.1} % |");
            let is_in = |[low, high]: [f64; 2], value: f64| (low..=high).contains(&value);
            assert!(is_in(named.off, off), "{config} {theirs}: {off} %");
            let is_left = named.left.is_none_or(|left| is_in(left, off + gate));
            assert!(is_left, "{config} {theirs}: {} % are left", off + gate);
        }
        assert!(num_played > 0, "{theirs} was recorded on none of these lists");
    }
}
