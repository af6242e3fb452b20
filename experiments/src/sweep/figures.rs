//! What a unit's own policy came to, by what it was played on, so that units can be paired.

use pleach_scheduler::portable_math::ln;
use serde_json::{Map, Value};

use super::judge::{JUDGED, OWN};
use super::manifest::ManifestUnit;
use super::scalars::scalars_of;
use crate::evaluate::metric::{Better, Metric};
use crate::evaluate::stats::mean;

/// Settings of an evaluation that say which jobs are played on which cluster; the others say which policies play and how.
pub(super) const OF_WORKLOADS: [&str; 10] = [
    "workload",
    "format",
    "cluster",
    "from_day",
    "days",
    "window_days",
    "virtual_clusters",
    "split",
    "num_jobs",
    "load",
];
/// Whether a dotted key is this name, or ends with it.
#[must_use]
pub(super) fn ends_with(key: &str, name: &str) -> bool {
    key == name || key.strip_suffix(name).is_some_and(|before| before.ends_with('.'))
}

/// -1 where more is better, else 1.
pub(super) fn sign(metric: &str) -> f64 {
    match Metric::find(last(metric)).map(|metric| metric.better) {
        Some(Better::Higher) => -1.0,
        _ => 1.0,
    }
}

pub(super) fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The figures of a unit's own policy by what it was played on.
pub(super) fn own_figures(
    (unit, value): (&ManifestUnit, &Value),
    config: &Value,
    metric: &str,
) -> Vec<((u64, String), f64)> {
    let name = last(metric);
    if let Some(runs) = value[JUDGED].as_array() {
        let own = runs.iter().filter(|run| run["policy"] == OWN);
        let of = |run: &Value| Some((judged_key(unit, run), run["metrics"][name].as_f64()?));
        let found: Vec<_> = own.filter_map(of).collect();
        if !found.is_empty() {
            return found;
        }
    }
    let on = match config.get("command").and_then(Value::as_str) {
        None | Some("evaluate") => {
            let is_of_workload = |(key, _): &(&String, &Value)| OF_WORKLOADS.contains(&key.as_str());
            let table = config.as_object().into_iter().flatten();
            let of_workload: Map<String, Value> = table
                .filter(is_of_workload)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            Value::Object(of_workload).to_string()
        }
        Some(_) => String::new(),
    };
    if let Some(runs) = value["runs"].as_array() {
        let of = |run: &Value| {
            let key = format!("{on} {} {}", run["workload"], run["seed"]);
            Some(((0, key), run["metrics"][name].as_f64()?))
        };
        return runs.iter().filter_map(of).collect();
    }
    let scalars = scalars_of(value);
    let mut found = scalars.iter().filter(|(key, _)| ends_with(key, metric));
    let figure = found.find_map(|(_, value)| value.as_f64());
    let key = (0, format!("{on} {}", unit.replicate));
    figure.map(|figure| (key, figure)).into_iter().collect()
}

pub(super) fn judged_key(unit: &ManifestUnit, run: &Value) -> (u64, String) {
    (unit.replicate, format!("{} {}", run["list"], run["seed"]))
}

/// The mean of the logarithms; none where a figure has none.
pub(super) fn mean_log(figures: &[((u64, String), f64)]) -> Option<f64> {
    let is_usable = |figure: f64| figure.is_finite() && figure > 0.0;
    let all = !figures.is_empty() && figures.iter().all(|(_, figure)| is_usable(*figure));
    let logs: Vec<f64> = figures.iter().map(|(_, figure)| ln(*figure)).collect();
    all.then(|| mean(&logs))
}
