//! The planners that users name, on the lists of Gavel's recorded runs: how far they are from the authors' programs.
//!
//! The presets replay those programs; the planners of a name are ours, and differ from them by rules that the table of
//! `lab/notes/validation.md` names. Costs and speeds are as there: no restart costs anything, run times are known.

use pleach_baselines::rounds::Targets;
use pleach_env::{SimConfig, simulate_planner};
use pleach_scheduler::{ActionKind, JobId};
use serde_json::{Value, json};

use super::gavel::{pair_entries, pair_speeds, runs, speeds, targets, workload};
use super::recorded::{folder, number, rows};

const CONFIGS: [&str; 3] = ["g1_s40single_4x3", "g2_s40multi_8x3", "g5_m500multi_16x3"];

/// Policy there, planner here, whether it does not know the types, and the range in which the mean JCT over all lists is, less
/// theirs, %. **Ranges are those of the table.**
const PLANNERS: [(&str, &str, bool, [f64; 2]); 11] = [
    ("max_min_fairness", "gavel-las", true, [-100.0, 100.0]),
    ("max_min_fairness_perf", "gavel-las", false, [-100.0, 100.0]),
    ("max_min_fairness_packed", "gavel-las-packed", false, [-100.0, 100.0]),
    ("finish_time_fairness_perf", "gavel-ftf", false, [-100.0, 100.0]),
    ("min_total_duration_perf", "gavel-makespan", false, [-100.0, 100.0]),
    ("fifo", "gavel-fifo", true, [-100.0, 100.0]),
    ("fifo_perf", "gavel-fifo", false, [-100.0, 100.0]),
    ("fifo_packed", "gavel-fifo-packed", false, [-100.0, 100.0]),
    ("allox", "allox", false, [-100.0, 100.0]),
    ("gandiva", "gandiva", false, [-100.0, 100.0]),
    ("gandiva", "gavel-gandiva", false, [-100.0, 100.0]),
];

#[test]
fn planners_are_as_far_from_the_authors_programs_as_the_table_says() {
    let Some(gavel) = folder("gavel") else { return };
    let speeds = speeds(&gavel);
    let mut sim = SimConfig::default();
    sim.capabilities.grant(ActionKind::Preempt, true);
    sim.capabilities.restart_cost_s = 0.0;
    for (theirs, ours, is_blind, [low, high]) in PLANNERS {
        let entry = pleach_baselines::find(ours).unwrap();
        let settings = if is_blind { json!({ "blind": true }) } else { Value::Null };
        let mut sim = sim.clone();
        sim.capabilities = sim.capabilities.with_actions(entry.requirements);
        for config in CONFIGS {
            let runs = runs(&gavel, config);
            let Some(run) = runs.iter().find(|run| run.policy == theirs) else {
                continue;
            };
            let mut workload = workload(&gavel, &speeds, run);
            workload.cluster.pairs = pair_entries(&workload, &pair_speeds(&gavel, &workload));
            let mut planner = pleach_baselines::make(ours, &settings).unwrap();
            let result = simulate_planner(&workload, &sim, planner.as_mut()).unwrap();
            let table = rows(&gavel.join(&run.name).join(&run.policy).join("jobs.csv.gz"));
            let jcts = table.iter().map(|row| number(row, "finish_s") - number(row, "arrival_s"));
            let there_s = jcts.sum::<f64>() / table.len() as f64;
            let off = 100.0 * (result.metrics.avg_jct_s / there_s - 1.0);
            // Until targets are set with a job among them, it does not run there.
            let (tables, times_s) = targets(&gavel.join(&run.name).join(&run.policy), run);
            let waits = workload.jobs.iter().enumerate().map(|(job, spec)| {
                let has = |table: &Targets| table.keys().any(|key| key.includes(JobId(job as u32)));
                let first = tables.iter().position(has).map_or(f64::NAN, |place| times_s[place]);
                first - spec.submit.as_secs_f64()
            });
            let gate = 100.0 * waits.sum::<f64>() / table.len() as f64 / there_s;
            println!("| {config} {theirs} | `{ours}` | {off:+.1} % | {gate:.1} % |");
            assert!((low..=high).contains(&off), "{config} {theirs}: {off} %");
        }
    }
}
