//! A review as a report: the outcome, what was promised beside what was seen, and the same jobs in the twin.

use pleach_site::promise::{Row, Stated};

use super::figures::FIGURES;
use super::review::{Beside, Review};
use crate::evaluate::metric::show_seconds;
use crate::evaluate::stats::Ratio;
use crate::evaluate::table::{Table, show_interval};
use crate::plot::{Axis, Plot};
use crate::report::{Block, Report, intervals};

/// The report.
#[must_use]
pub fn page(review: &Review) -> Report {
    let about = format!("{} in place of {}", review.policy, review.before);
    let twin = [("seen / twin", review.paired.wait, review.paired.jct)];
    let gain = format!("twin: {} / {}", review.policy, review.before);
    let twin: Vec<_> = twin
        .into_iter()
        .chain([(gain.as_str(), review.paired.gain_wait, review.paired.gain_jct)])
        .collect();
    let rows = twin
        .iter()
        .flat_map(|(name, wait, jct)| [(name, "wait", wait), (name, "JCT", jct)]);
    let rows = rows.filter_map(|(name, what, ratio)| Some((format!("{name}: {what}"), (*ratio)?)));
    let plot = intervals(
        "The same jobs in the twin, with pairs of days",
        "ratio of means (log scale; left of 1 is less)",
        rows,
    );
    Report::new("A promise and what became of it")
        .note(&about)
        .section("The outcome", [Block::Verdict(review.line())])
        .section("Promised and seen", [all_jobs(review).into()])
        .section(
            "By size and account",
            plots(review).map(Block::from).chain([groups(review).into()]),
        )
        .section(
            "The same jobs in the twin",
            plot.into_iter().map(Block::from).chain([pairs(&twin).into()]),
        )
}

fn table(header: &[&str], rows: Vec<Vec<String>>, notes: Vec<String>) -> Table {
    Table {
        header: header.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        notes,
    }
}

/// A figure as people read it.
fn shown(value: f64, is_time: bool) -> String {
    match is_time {
        true => show_seconds(value),
        false => format!("{value:.2}"),
    }
}

fn stated(row: Option<&Row>, key: &str, is_time: bool) -> String {
    let Some(Stated { value, low, high }) = row.and_then(|row| row.figures.get(key)) else {
        return "-".into();
    };
    let [value, low, high] = [*value, *low, *high].map(|value| shown(value, is_time));
    format!("{value} [{low}, {high}]")
}

fn value(row: Option<&Row>, key: &str) -> Option<f64> {
    Some(row?.figures.get(key)?.value)
}

fn all_jobs(review: &Review) -> Table {
    let Some(Beside { promised, seen, .. }) = review.rows.first() else {
        return Table::default();
    };
    let ratio = |key: &str| {
        let both = value(Some(seen), key).zip(value(promised.as_ref(), key));
        both.filter(|(_, promised)| *promised > 0.0).map_or_else(
            || "-".into(),
            |(seen, promised)| format!("{:.2}", seen / promised),
        )
    };
    let rows = FIGURES.iter().map(|(key, name, is_time)| {
        vec![
            (*name).to_owned(),
            stated(promised.as_ref(), key, *is_time),
            stated(Some(seen), key, *is_time),
            ratio(key),
        ]
    });
    let mut notes = vec![format!(
        "{} jobs on {:.1} days; 95 % intervals of drawing days; margin {:.0} %",
        seen.num_jobs,
        review.num_days,
        100.0 * review.margin
    )];
    if review.num_unknown > 0 {
        notes.push(format!(
            "{} jobs of which it is not known when they began and ended are not compared",
            review.num_unknown
        ));
    }
    table(&["all jobs", "promised", "seen", "ratio"], rows.collect(), notes)
}

fn name(row: &Row) -> String {
    format!("{} {}", row.by, row.name)
}

fn groups(review: &Review) -> Table {
    let rows = review.rows.iter().skip(1).map(|of| {
        let promised = of.promised.as_ref();
        let time = |row: Option<&Row>, key| value(row, key).map_or_else(|| "-".into(), show_seconds);
        let kept = match of.is_broken {
            Some(true) => "no",
            Some(false) => "yes",
            None => "-",
        };
        vec![
            name(&of.seen),
            of.seen.num_jobs.to_string(),
            time(promised, "wait_s"),
            time(Some(&of.seen), "wait_s"),
            time(promised, "jct_s"),
            time(Some(&of.seen), "jct_s"),
            kept.to_owned(),
        ]
    });
    let header = ["jobs", "num", "wait", "seen", "JCT", "seen", "kept"];
    let notes = vec!["means, promised and seen; kept: of waits, with the margin; -: too few jobs".into()];
    table(&header, rows.collect(), notes)
}

fn plots(review: &Review) -> impl Iterator<Item = Plot> + '_ {
    ["GPUs", "tenant"].into_iter().filter_map(move |by| {
        let rows: Vec<&Beside> = review.rows.iter().filter(|of| of.seen.by == by).collect();
        let labels = rows.iter().map(|of| of.seen.name.clone()).collect();
        let of = |row: Option<&Row>| value(row, "wait_s").unwrap_or(f64::NAN);
        let promised = rows.iter().map(|beside| of(beside.promised.as_ref())).collect();
        let seen = rows.iter().map(|beside| of(Some(&beside.seen))).collect();
        let bars = [("promised", promised), ("seen", seen)];
        let title = format!("Mean wait promised and seen, by {by}");
        Plot::bars(&title, by, Axis::of("mean wait").seconds(), labels, &bars)
    })
}

fn pairs(twin: &[(&str, Option<Ratio>, Option<Ratio>)]) -> Table {
    let cell = |ratio: &Option<Ratio>| ratio.map_or_else(|| "-".into(), show_interval);
    let rows = twin
        .iter()
        .map(|(name, wait, jct)| vec![(*name).to_owned(), cell(wait), cell(jct)]);
    let notes = vec!["ratios of means on the same jobs, with 95 % intervals over pairs of days".into()];
    table(&["", "wait", "JCT"], rows.collect(), notes)
}
