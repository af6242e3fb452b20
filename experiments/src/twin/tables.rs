//! The tables of a twin.

use super::{Twin, Under, UnderRow, WaitFigures};
use crate::evaluate::metric::show_seconds;
use crate::evaluate::results::folded;
use crate::evaluate::stats::Ratio;
use crate::evaluate::table::Table;
use crate::plot::{Axis, Mark, Plot};
use crate::report::intervals;

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
            super::shown(week.explained),
        ]
    });
    let header = ["week", "use %", "sim.", "queue", "sim.", "explained"];
    let weeks = Table {
        header: header.map(str::to_owned).to_vec(),
        rows: weeks.collect(),
        notes: vec![
            "use: GPUs in use over all; queue: jobs that wait, mean over the week; explained: starts of site and policy over those of either, given what was observed"
                .into(),
        ],
    };
    vec![
        (
            format!("Waits, h: at the site beside simulated under {}", twin.policy),
            waits,
        ),
        ("Weeks".to_owned(), weeks),
    ]
}

/// What was observed beside what is simulated: mean waits by size, partition and tenant, and queue and use week by week.
#[must_use]
pub fn plots(twin: &Twin) -> Vec<Plot> {
    let names = ["at the site", "simulated"];
    let by = |by: &'static str| {
        let groups: Vec<&super::Group> = twin.groups.iter().filter(|group| group.by == by).collect();
        let labels = groups.iter().map(|group| group.name.clone()).collect();
        let of = |figures: fn(&super::Group) -> &WaitFigures| {
            let means = groups.iter().map(|group| figures(group).mean_s);
            means.map(|mean| mean.unwrap_or(f64::NAN)).collect()
        };
        let (observed, simulated) = (of(|group| &group.observed), of(|group| &group.simulated));
        let bars = [(names[0], observed), (names[1], simulated)];
        let title = format!("Mean wait at the site and simulated, by {by}");
        Plot::bars(&title, by, Axis::of("mean wait").seconds(), labels, &bars)
    };
    let weeks = |title: &str, y: Axis, values: [fn(&super::Week) -> f64; 2]| {
        let marks = names.into_iter().zip(values).map(|(name, value)| {
            let points = twin.weeks.iter().enumerate();
            Mark::line(name, points.map(|(number, week)| (number as f64, value(week))))
        });
        let is_long = twin.weeks.len() > 1;
        Plot::new(title, Axis::of("week"), y)
            .with(marks)
            .if_any()
            .filter(|_| is_long)
    };
    let queue = weeks(
        "Jobs that wait, mean of each week",
        Axis::of("jobs"),
        [|week| week.queue_observed, |week| week.queue_simulated],
    );
    let used = weeks(
        "GPUs in use, mean of each week",
        Axis::of("of all GPUs").percent(),
        [|week| week.use_observed, |week| week.use_simulated],
    );
    [by("GPUs"), by("partition"), by("tenant"), queue, used]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether no row before it has the same: where types are equally fast, say, several decide alike.
fn is_first(under: &Under, row: &UnderRow) -> bool {
    let same = under
        .rows
        .iter()
        .find(|other| other.jct_parts_s == row.jct_parts_s);
    same.is_some_and(|first| first.policy == row.policy)
}

/// The ratios of [`under_table`] as a picture; none where nothing is compared.
#[must_use]
pub fn under_plot(title: &str, under: &Under) -> Option<Plot> {
    let (site, others) = under.rows.split_first()?;
    let rows = others.iter().filter(|row| is_first(under, row));
    let rows = rows.filter_map(|row| Some((row.policy.clone(), row.jct?)));
    let x = format!(
        "mean completion time / that under {} (log scale; left of 1 is better)",
        site.policy
    );
    intervals(title, &x, rows)
}

/// The same jobs under other policies, the decisive columns first: at most 80 columns with names of usual length.
#[must_use]
pub fn under_table(under: &Under) -> Table {
    let ratio = |ratio: Option<Ratio>| match ratio {
        Some(Ratio {
            mean,
            low: Some(low),
            high: Some(high),
            ..
        }) => format!("{mean:.2} [{low:.2}, {high:.2}]"),
        Some(ratio) => format!("{:.2}", ratio.mean),
        None => "-".into(),
    };
    let about = |row: &UnderRow| {
        let ratio = row.wait.map(|wait| wait.mean);
        let seen = under.observed_wait_s.zip(ratio);
        seen.map_or_else(|| "-".into(), |(seen, ratio)| show_seconds(seen * ratio))
    };
    let alike = under.rows.iter().filter(|row| !is_first(under, row));
    let first = |row: &UnderRow| {
        under
            .rows
            .iter()
            .find(|other| other.jct_parts_s == row.jct_parts_s)
    };
    let alike = folded(alike.map(|row| {
        format!(
            "{} as {}",
            row.policy,
            first(row).map_or("", |first| first.policy.as_str())
        )
    }));
    let shown = under
        .rows
        .iter()
        .enumerate()
        .filter(|(_, row)| is_first(under, row));
    let rows = shown.map(|(place, row)| {
        let own = |text: String| if place == 0 { "1".to_owned() } else { text };
        vec![
            row.policy.clone(),
            own(ratio(row.jct)),
            own(ratio(row.wait)),
            about(row),
            show_seconds(row.p99_jct_s),
            format!("{:.2}", row.avg_slowdown),
            format!("{:.2}", row.fairness),
        ]
    });
    let header = ["policy", "JCT", "wait", "about", "p99", "slowdown", "fair"];
    let site = under.rows.first().map_or("-", |row| row.policy.as_str());
    let mut table = Table {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: vec![
            format!(
                "{} jobs; JCT, wait: mean over that simulated under {site}, 95 % interval over {}",
                under.num_jobs,
                spans(under)
            ),
            "about: the observed mean wait times the ratio; p99: of JCT; fair: Jain's index over tenants' slowdowns"
                .into(),
        ],
    };
    table.notes.extend(alike);
    table
}

/// `16 days` or `10 parts of 6 days`.
fn spans(under: &Under) -> String {
    let num = under.rows.first().map_or(0, |row| row.jct_parts_s.len());
    match under.span.part_days {
        1.0 => format!("{num} days"),
        days => format!("{num} parts of {days} days"),
    }
}
