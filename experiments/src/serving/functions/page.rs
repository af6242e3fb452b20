//! A comparison of dispatchers as one HTML page: hits and cost over the load, what was held and waited over time.

use pleach_serving::functions::Interval;

use super::compare::{DispatcherComparison, Loads, cores_and_slices};
use crate::plot::axis::Axis;
use crate::plot::frame::{Frame, at_both_widths, legend};
use crate::plot::look::series_of;
use crate::report::page::{html_table, page, preformatted, section};
use crate::serving::page::Lines;

impl Loads {
    /// The page.
    #[must_use]
    pub fn html(&self, command_line: &str) -> String {
        let mut body = String::from("<h1>Dispatchers</h1>\n");
        let over = self
            .table()
            .map(|table| html_table(&table) + &self.over_the_load());
        section(&mut body, "Hits and cost over the load", over);
        for (load, comparison) in &self.at {
            let timelines = self.timelines(comparison);
            let shown = html_table(&comparison.table()) + &timelines;
            section(&mut body, &format!("{load} times the load"), Some(shown));
        }
        section(&mut body, "How this was made", Some(preformatted(command_line)));
        page("Dispatchers", &body)
    }

    fn over_the_load(&self) -> String {
        let loads: Vec<f64> = self.at.iter().map(|(load, _)| *load).collect();
        let names = || {
            self.at[0]
                .1
                .policies
                .iter()
                .map(|row| row.policy.as_str())
                .collect()
        };
        let lines = |is_share: bool| Lines {
            x: "times the load",
            at: &loads,
            names: names(),
            is_share,
        };
        let row = |at: usize, policy: usize| &self.at[at].1.policies[policy];
        lines(true).plot(
            "within the target (%)",
            "Requests within their target over the load, one line for each dispatcher",
            |at, policy| row(at, policy).hits_pct,
        ) + &lines(false).plot(
            "$ per 1,000 hits",
            "Cost of 1,000 hits over the load, one line for each dispatcher",
            |at, policy| row(at, policy).usd_per_1000_hits,
        )
    }

    /// Of the first list.
    fn timelines(&self, comparison: &DispatcherComparison) -> String {
        let (cores, slices) = cores_and_slices(&self.platform);
        let uses_slices = comparison.policies.iter().any(|row| {
            !row.timeline
                .points(|one| one.slice_us as f64)
                .iter()
                .all(|point| point.1 == 0.0)
        });
        let busy = |one: &Interval| {
            100.0
                * if uses_slices {
                    one.slice_us as f64 / slices
                } else {
                    one.core_us as f64 / cores
                }
        };
        let what = if uses_slices {
            "slices held (%)"
        } else {
            "cores held (%)"
        };
        [
            over_time(comparison, what, Some(100.0), busy),
            over_time(comparison, "requests that wait", None, |one| {
                one.waiting_us as f64
            }),
            over_time(comparison, "cold starts a second", None, |one| {
                1e6 * one.cold_starts as f64
            }),
        ]
        .concat()
    }
}

/// A figure over time, one line for each dispatcher.
fn over_time(
    comparison: &DispatcherComparison,
    y: &str,
    most: Option<f64>,
    figure: impl Fn(&Interval) -> f64,
) -> String {
    let rows = &comparison.policies;
    let lines: Vec<Vec<(f64, f64)>> = rows.iter().map(|row| row.timeline.points(&figure)).collect();
    let all = || lines.iter().flatten();
    let end_s = all().map(|point| point.0).fold(0.0, f64::max);
    let top = most.unwrap_or_else(|| all().map(|point| point.1).fold(0.0, f64::max));
    let names: Vec<&str> = rows.iter().map(|row| row.policy.as_str()).collect();
    let looks = series_of(names.iter().copied());
    let drawn = at_both_widths(|width| {
        let time = Axis::time("time since the first request", end_s);
        let mut frame = Frame::new(time, Axis::linear(y, 0.0, top), 220.0).wide(width);
        for ((name, series), points) in names.iter().zip(&looks).zip(&lines) {
            frame.line(*series, name, points);
        }
        Some(frame.render(&format!(
            "{y} over time on the first list, one line for each dispatcher"
        )))
    });
    let legends: Vec<(usize, &str)> = looks.iter().copied().zip(names.iter().copied()).collect();
    drawn.unwrap_or_default() + &legend(&legends)
}
