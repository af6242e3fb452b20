//! Answers and scores as pages.

use pleach_forecast::score::LEVELS;

use super::{Answer, Forecast, Hindcast};
use crate::evaluate::metric::show_seconds;
use crate::evaluate::stats::Ratio;
use crate::evaluate::table::{Table, show_interval};
use crate::plot::{Axis, Mark, Plot};
use crate::report::{Block, Report};

fn table(header: &[&str], rows: Vec<Vec<String>>, notes: Vec<String>) -> Table {
    Table {
        header: header.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        notes,
    }
}

/// An answer with the distributions.
#[must_use]
pub fn page(answer: &Answer) -> Report {
    let all = || std::iter::once(&answer.forecast).chain(&answer.alternatives);
    let curve = |of: &Forecast| {
        let points = of
            .quantiles_s
            .iter()
            .zip(LEVELS)
            .map(|(wait_s, level)| (*wait_s, level));
        Mark::line(&of.what, points)
    };
    let y = Axis::of("chance to have started").percent().within(0.0, 1.0);
    let plot = Plot::new(
        "When it starts",
        Axis::of("time from now").seconds().from_zero(),
        y,
    );
    let plot = plot.with(all().map(curve)).if_any();
    let words = answer.words();
    Report::new("When a job would start")
        .note(&answer.forecast.what)
        .section(
            "The answer",
            words.lines().map(|line| Block::Text(line.trim().to_owned())),
        )
        .section("The distribution", plot.into_iter().map(Block::from))
}

/// The scores of a hindcast.
#[must_use]
pub fn hindcast_page(found: &Hindcast) -> Report {
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    let ratio = |of: &Option<Ratio>| of.map_or_else(|| "-".into(), show_interval);
    let rows = found.rows.iter().map(|row| {
        vec![
            row.name.to_owned(),
            format!("{:.3}", row.loss_log),
            format!("{:.0}", row.loss_s),
            ratio(&row.over_best_log),
            ratio(&row.over_best_s),
            percent(row.held),
            show_seconds(row.width_s),
        ]
    });
    let header = [
        "forecast",
        "log",
        "s",
        "log / best",
        "s / best",
        "80 % holds",
        "width",
    ];
    let mut notes: Vec<String> = found
        .rows
        .iter()
        .map(|row| format!("{}: {}", row.name, row.about))
        .collect();
    notes.push(format!(
        "pinball loss at .05 .25 .5 .75 .95, over the best of B0 to B3 with 95 % intervals over {} days; holds and width: of the {} jobs \
         that had to wait",
        found.num_days, found.num_must_wait
    ));
    let scores = table(&header, rows.collect(), notes);
    let rows = found.buckets.iter().map(|bucket| {
        let [low, median, high] = bucket.waits_s.map(show_seconds);
        let waits = format!("{median} ({low} to {high})");
        vec![
            bucket.stated.to_owned(),
            bucket.num_jobs.to_string(),
            percent(bucket.at_once),
            waits,
            format!("{:.1}", bucket.factor),
            percent(bucket.held),
        ]
    });
    let header = [
        "stated median",
        "jobs",
        "started at once",
        "waits: median (quartiles)",
        "off by a factor of",
        "80 % holds",
    ];
    let buckets = table(&header, rows.collect(), Vec::new());
    let axis = |title| Axis::of(title).percent().within(0.0, 1.0);
    let plot = Plot::new("Stated and seen", axis("stated chance"), axis("part of the jobs"));
    let plot = plot.with([
        Mark::dots("answers", found.reliability.iter().copied()),
        Mark::rule("", (0.0, 0.0), (1.0, 1.0)),
    ]);
    let [history, trees, replay] = found.answered;
    let verdict = format!(
        "{} forecasts on {} days under {}; {} of the jobs waited. Answered by replays {replay}, by trees on the state {trees}, by plain \
         history {history}",
        found.num_forecasts,
        found.num_days,
        found.policy,
        percent(found.waited)
    );
    Report::new("How good forecasts of starts were")
        .note(&found.policy)
        .section("Scores", [Block::Verdict(verdict), scores.into()])
        .section("By what was stated", [Block::from(buckets)])
        .section(
            "Asking for less",
            found.gains.iter().map(|gains| Block::Text(gains.words())),
        )
        .section("Reliability", plot.if_any().map(Block::from))
}
