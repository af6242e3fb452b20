//! The order of the policies on one workload under one condition, with their results.

use serde::Serialize;

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::metric::{METRICS, show_plain};
use pleach_experiments::evaluate::results::{Results, folded};
use pleach_experiments::evaluate::run::TimedRun;
use pleach_experiments::evaluate::table::{Table, absent};

/// Columns of a table, with the time of a plan after them.
pub const COLUMNS: [&str; 7] = [
    "avg_jct_s",
    "avg_jct_gap",
    "p99_jct_s",
    "makespan_s",
    "fairness",
    "utilisation",
    "preemptions",
];

/// One scheduler's place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Its name.
    pub policy: String,
    /// Means over seeds, by key.
    pub metrics: std::collections::BTreeMap<String, f64>,
    /// Average JCT over that of the best, geometric mean over seeds, with a 95 % interval; at least about 1.
    pub ratio_to_best: Option<pleach_experiments::evaluate::stats::Ratio>,
    /// Mean time of a plan, ms. Depends on the machine.
    pub plan_ms: f64,
    /// Longest plan, ms. Depends on the machine.
    pub plan_ms_max: f64,
}

/// Sorts the matches of one workload and condition by average JCT, best first.
///
/// # Errors
/// Matches that cannot be compared.
pub fn standings(matches: &[TimedRun]) -> Result<Vec<Standing>, Error> {
    let runs: Vec<_> = matches.iter().map(|played| played.run.clone()).collect();
    let mean_jct_s = |results: &Results, name: &str| -> f64 {
        let summary = results.policies().find(|(policy, _)| *policy == name);
        summary.map_or(f64::INFINITY, |(_, summary)| {
            summary.metrics.get("avg_jct_s").copied().unwrap_or(f64::INFINITY)
        })
    };
    let plain = Results::new("tournament", runs.clone(), None)?;
    let mut names: Vec<String> = plain.policies().map(|(name, _)| name.to_string()).collect();
    names.sort_by(|a, b| {
        mean_jct_s(&plain, a)
            .total_cmp(&mean_jct_s(&plain, b))
            .then(a.cmp(b))
    });
    let best = names.first().cloned();
    let results = Results::new("tournament", runs, best.as_deref())?;
    let standing = |name: &String| {
        let own = || matches.iter().filter(|played| played.run.policy == *name);
        let (num, plans): (u64, f64) = own().fold((0, 0.0), |(num, ms), played| {
            (num + played.num_plans, ms + played.planning.as_secs_f64() * 1e3)
        });
        let summary = results.policies().find(|(policy, _)| policy == name)?.1;
        Some(Standing {
            policy: name.clone(),
            metrics: summary.metrics.clone(),
            ratio_to_best: summary.ratio_vs_reference.as_ref().map(|ratio| ratio.ratio),
            plan_ms: plans / num.max(1) as f64,
            plan_ms_max: own()
                .map(|played| played.planning_max.as_secs_f64() * 1e3)
                .fold(0.0, f64::max),
        })
    };
    Ok(names.iter().filter_map(standing).collect())
}

/// The standings as a table.
#[must_use]
pub fn table(standings: &[Standing]) -> Table {
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter_map(|key| METRICS.iter().find(|metric| metric.key == *key))
        .collect();
    let mut header = vec!["policy".to_string(), "JCT vs best".to_string()];
    header.extend(columns.iter().map(|metric| metric.label.to_string()));
    header.push("ms/plan".into());
    let first = |standing: &Standing| {
        let same = |other: &&Standing| other.metrics == standing.metrics;
        let first = standings.iter().find(same);
        first.map_or("", |first| first.policy.as_str())
    };
    let alike = standings.iter().filter(|row| first(row) != row.policy);
    let alike = folded(alike.map(|row| format!("{} as {}", row.policy, first(row))));
    let shown = standings.iter().filter(|row| first(row) == row.policy);
    let rows = shown.map(|standing| {
        let ratio = standing
            .ratio_to_best
            .map_or_else(String::new, |ratio| match (ratio.low, ratio.high) {
                (Some(low), Some(high)) if ratio.mean != 1.0 => {
                    format!("{:.2} [{low:.2}, {high:.2}]", ratio.mean)
                }
                _ => format!("{:.2}", ratio.mean),
            });
        let mut row = vec![standing.policy.clone(), ratio];
        row.extend(columns.iter().map(|metric| {
            let value = standing.metrics.get(metric.key);
            let is_known = |row: &Standing| row.metrics.contains_key(metric.key);
            let absent = if standings.iter().any(is_known) {
                absent(metric)
            } else {
                "-"
            };
            value.map_or_else(|| absent.to_string(), |value| metric.show(*value))
        }));
        row.push(show_plain(standing.plan_ms));
        row
    });
    Table {
        header,
        rows: rows.collect(),
        notes: std::iter::once(
            "JCT vs best: geometric mean of paired ratios of average JCT, 95 % bootstrap interval; ms/plan depends on the machine"
                .into(),
        )
        .chain(alike)
        .collect(),
    }
}
