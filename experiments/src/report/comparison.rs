//! The report of a comparison of policies: summary, ratios, completion times, use over time.

use super::{Block, Report};
use crate::evaluate::metric::{Better, METRICS, Versus};
use crate::evaluate::results::Results;
use crate::evaluate::stats::Ratio;
use crate::evaluate::table::{Table, show_interval};
use crate::plot::{Axis, Mark, Plot, SERIES_MAX, distribution_points};

/// Shortest completion time that has a place of its own, s.
const JCT_LOW_S: f64 = 1.0;

/// The report; callers add what else they know.
#[must_use]
pub fn compared(title: &str, results: &Results) -> Report {
    let keys: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
    let summary = Table::compare(results, &keys);
    let report = Report::new(title).note(&about(results));
    let report = report.section("Summary", [summary.into()]);
    plots(results)
        .into_iter()
        .fold(report, |report, (heading, plot)| {
            report.section(heading, plot.map(Block::from))
        })
}

/// What was compared, in a line.
pub(crate) fn about(results: &Results) -> String {
    let seeds = format!("seeds {}", seeds(results.seeds()));
    [results.command(), &results.workloads().join(", "), &seeds].join(" · ")
}

/// The plots of a comparison with their headings; those of which the runs say nothing are left out.
pub(crate) fn plots(results: &Results) -> [(&'static str, Option<Plot>); 3] {
    [
        ("Against the reference", against(results)),
        ("Job completion times", completion_times(results)),
        ("Utilisation over time", utilisation(results)),
    ]
}

/// A row for each policy but the reference: its paired ratio or difference with its interval.
#[must_use]
pub fn against(results: &Results) -> Option<Plot> {
    let reference = results.reference()?;
    if results.metric().versus != Versus::Ratio {
        return gains(results, reference);
    }
    let (what, better) = (results.metric().label, results.metric().better);
    let rows = results.shown().filter(|(name, _)| *name != reference);
    let rows = rows.filter_map(|(name, summary)| {
        Some((results.label(name), summary.ratio_vs_reference.as_ref()?.ratio))
    });
    let side = if better == Better::Higher { "right" } else { "left" };
    let x = format!("{what} / {what} of {reference} (log scale; {side} of 1 is better)");
    intervals(
        &format!("Ratio of {what} to {reference} with 95 % intervals"),
        &x,
        rows,
    )
}

/// The same by differences.
fn gains(results: &Results, reference: &str) -> Option<Plot> {
    let what = results.metric().label;
    let rows = results.shown().take(SERIES_MAX).filter_map(|(name, summary)| {
        let gain = summary.gain_vs_reference.as_ref()?.gain;
        let mark = Mark::interval(name, gain.mean, gain.interval);
        Some((mark.name.clone(), gain.to_string(), vec![mark]))
    });
    let unit = match results.metric().versus {
        Versus::Percent => format!("{what} over that of {reference} (%)"),
        _ => format!("{what} over that of {reference}"),
    };
    let plot = Plot::new(
        format!("{unit} with 95 % intervals"),
        Axis::of(unit),
        Axis::default(),
    );
    let plot = plot.of_policies().with_rows(rows).if_any()?;
    Some(plot.with([Mark::rule("", (0.0, f64::NEG_INFINITY), (0.0, f64::INFINITY))]))
}

/// A row for each policy with its ratio and interval, and a line at 1; none without a row.
#[must_use]
pub fn intervals(title: &str, x: &str, rows: impl IntoIterator<Item = (String, Ratio)>) -> Option<Plot> {
    let rows = rows.into_iter().take(SERIES_MAX).map(|(name, ratio)| {
        let mark = Mark::interval(&name, ratio.mean, ratio.low.zip(ratio.high));
        (mark.name.clone(), show_interval(ratio), vec![mark])
    });
    let plot = Plot::new(title, Axis::of(x).log(), Axis::default());
    let plot = plot.of_policies().with_rows(rows).if_any()?;
    Some(plot.with([Mark::rule("", (1.0, f64::NEG_INFINITY), (1.0, f64::INFINITY))]))
}

/// Which part of the jobs finished within a time, over all runs of each policy.
fn completion_times(results: &Results) -> Option<Plot> {
    let curves: Vec<(String, Vec<f64>)> = results
        .shown()
        .map(|(name, _)| {
            let runs = results.runs().iter().filter(|run| run.policy == name);
            let mut jct_s: Vec<f64> = runs.flat_map(|run| run.jct_s.iter().copied()).collect();
            jct_s.sort_by(f64::total_cmp);
            (results.label(name), jct_s)
        })
        .collect();
    let curves = curves
        .iter()
        .map(|(name, jct_s)| (name.as_str(), distribution_points(jct_s)));
    let words = (
        "Distribution of job completion times",
        "job completion time (log scale)",
        "jobs finished within this time",
    );
    Some(Plot::distribution(words, JCT_LOW_S, curves)?.of_policies())
}

/// How busy the cluster was: a strip for each policy below the other, on the first workload and seed that all finished.
fn utilisation(results: &Results) -> Option<Plot> {
    let num = results.policies().count();
    let (workload, seed) = results.workloads().iter().find_map(|workload| {
        let has = |seed: u64| {
            let runs = results.runs().iter();
            runs.filter(|run| &run.workload == workload && run.seed == seed)
                .count()
                == num
        };
        Some((workload, *results.seeds().iter().find(|seed| has(**seed))?))
    })?;
    let strips = results.shown().take(SERIES_MAX).filter_map(|(name, _)| {
        let mut runs = results.runs().iter();
        let run = runs.find(|run| run.policy == name && &run.workload == workload && run.seed == seed)?;
        let mark = Mark::area(&results.label(name), run.utilisation.iter().copied());
        (!mark.points.is_empty()).then(|| (mark.name.clone(), String::new(), vec![mark]))
    });
    let title = format!("Busy GPUs over time, {workload}, seed {seed}; a full strip is all GPUs");
    let plot = Plot::new(title, Axis::of("simulated time").seconds(), Axis::default());
    plot.of_policies().with_rows(strips).if_any()
}

fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.len() > 6 => format!("{first} … {last} ({} of them)", seeds.len()),
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
