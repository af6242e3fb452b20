//! The tables of a twin.

use super::{Twin, WaitFigures};
use crate::evaluate::table::Table;

/// Waits by group, and use and queue by week, each with its heading.
#[must_use]
pub fn sections(twin: &Twin) -> Vec<(String, Table)> {
    let hours =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value / 3600.0));
    let three = |figures: &WaitFigures| [figures.mean_s, figures.p50_s, figures.p90_s].map(hours);
    let groups = twin.groups.iter().map(|group| {
        let name = match group.by {
            "all" => "all".to_owned(),
            by => format!("{by} {}", group.name),
        };
        let mut row = vec![name, group.num_jobs.to_string()];
        for (observed, simulated) in three(&group.observed).into_iter().zip(three(&group.simulated)) {
            row.extend([observed, simulated]);
        }
        row
    });
    let header = ["jobs", "num", "mean", "sim.", "median", "sim.", "90 %", "sim."];
    let waits = Table {
        header: header.map(str::to_owned).to_vec(),
        rows: groups.collect(),
        notes: match twin.num_unobserved {
            0 => Vec::new(),
            num => vec![format!(
                "{num} jobs of which it is not known when they began are not compared"
            )],
        },
    };
    let weeks = twin.weeks.iter().enumerate().map(|(number, week)| {
        vec![
            number.to_string(),
            format!("{:.1}", week.use_observed * 100.0),
            format!("{:.1}", week.use_simulated * 100.0),
            format!("{:.1}", week.queue_observed),
            format!("{:.1}", week.queue_simulated),
        ]
    });
    let header = ["week", "use %", "sim.", "queue", "sim."];
    let weeks = Table {
        header: header.map(str::to_owned).to_vec(),
        rows: weeks.collect(),
        notes: vec!["use: GPUs in use over all; queue: jobs that wait, mean over the week".into()],
    };
    vec![
        (
            format!("Waits, h: at the site beside simulated under {}", twin.policy),
            waits,
        ),
        ("Weeks".to_owned(), weeks),
    ]
}
