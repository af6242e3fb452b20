//! A report from numbers of your own: `cargo run --example report -p pleach-experiments -- report.html`.

#![allow(
    clippy::disallowed_methods,
    reason = "an example; its last places are nobody's promise"
)]

use std::collections::BTreeMap;
use std::path::Path;

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::results::{PolicyRun, Results};
use pleach_experiments::evaluate::table::{SHORT_KEYS, Table};
use pleach_experiments::report::{LearningCurve, Report};

/// An invented run: `scale` stretches every completion time.
fn invented(policy: &str, seed: u64, scale: f64) -> PolicyRun {
    let noise = |i: u64| ((i * 2_654_435_761 + seed * 40_503) % 1000) as f64 / 1000.0;
    let jct_s: Vec<f64> = (0..2000)
        .map(|job| scale * 20.0 * (8.0 * noise(job)).exp())
        .collect();
    let avg_jct_s = jct_s.iter().sum::<f64>() / jct_s.len() as f64;
    let utilisation = (0..1500)
        .map(|i| (600.0 * i as f64, (0.9 - 0.5 * noise(i * i) / scale).max(0.0)))
        .collect();
    let metrics = [
        ("avg_jct_s", avg_jct_s),
        ("p50_jct_s", avg_jct_s / 8.0),
        ("avg_slowdown", 1.0 + scale),
        ("utilisation", 0.65 / scale.sqrt()),
        ("num_jobs", 2000.0),
    ];
    let metrics: BTreeMap<String, f64> = metrics
        .into_iter()
        .map(|(key, value)| (key.to_string(), value))
        .collect();
    PolicyRun {
        policy: policy.to_string(),
        workload: "invented".to_string(),
        seed,
        metrics,
        jct_s,
        utilisation,
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "report.html".to_string());
    let policies = [
        ("fifo", 2.4),
        ("las", 1.5),
        ("srtf", 1.0),
        ("network", 0.93),
        ("tree", 0.95),
    ];
    let runs = policies.iter().flat_map(|&(policy, scale)| {
        (0..10).map(move |seed| {
            invented(
                policy,
                seed,
                scale * (1.0 + 0.02 * (seed * (seed + 1) % 5) as f64 * scale),
            )
        })
    });
    let results = Results::new("example", runs.collect(), Some("srtf"))?;
    print!("{}", Table::compare(&results, &SHORT_KEYS).to_terminal());
    let learning = LearningCurve {
        metric: "average JCT (h)".to_string(),
        series: vec![(
            "network".to_string(),
            (0..60)
                .map(|i| (5e3 * f64::from(i), 2.0 + 3.0 * (-0.1 * f64::from(i)).exp()))
                .collect(),
        )],
        baselines: vec![("srtf".to_string(), 2.2), ("fifo".to_string(), 4.4)],
    };
    let report = Report {
        title: "An invented comparison",
        command_line: "cargo run --example report -p pleach-experiments",
        config: "num_jobs = 2000\nseeds = 10\n",
        results: &results,
        learning: Some(&learning),
        tree: Some("if remaining GPU-time <= 2 h\n  start on the fastest type\nelse\n  hold"),
    };
    report.write(Path::new(&path))
}
