//! What a list of a world is like: figures with their quantiles, arrivals over time.

use serde::Serialize;

use super::world::Description;
use crate::error::Error;
use crate::evaluate::table::Table;
use crate::plot::{Axis, Mark, Plot};
use crate::report::{Block, Report};
use crate::workload_report::spread::Summary;

/// Length of the intervals in which arrivals are counted, s.
pub(super) const MINUTE_S: f64 = 60.0;

/// Figures of a list, each with its mean, quantiles and largest.
pub(super) const HEADER: [&str; 7] = ["", "mean", "p10", "p50", "p90", "p99", "largest"];

/// The cells of a figure under [`HEADER`].
pub(super) fn cells(name: &str, summary: &Summary, show: fn(f64) -> String) -> Vec<String> {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), show);
    let quantiles = [10, 50, 90, 99].map(|percent| cell(summary.at(percent)));
    let mut cells = vec![name.to_string(), cell(summary.mean)];
    cells.extend(quantiles);
    cells.push(cell(summary.max));
    cells
}

impl Description {
    /// Of figures, their table, and how many came in each minute of a span.
    pub(super) fn of<T: Serialize>(
        figures: &T,
        table: Table,
        (noun, by_minute, span_s): (&str, &[u32], f64),
    ) -> Result<Description, Error> {
        let counts = by_minute.iter().enumerate();
        let rates: Vec<(f64, f64)> = counts
            .map(|(minute, count)| (MINUTE_S * minute as f64, f64::from(*count) / MINUTE_S))
            .collect();
        let what = format!("{noun} a second");
        let x = Axis::time("time since the first one", span_s);
        let plot = Plot::new(format!("{what} over time, by minute"), x, Axis::of(what.as_str()));
        let plot = plot.with([Mark::steps(&what, rates)]);
        Ok(Description {
            said: table.to_terminal().trim_end().to_string(),
            report: Report::new(format!("A list of {noun}"))
                .section("Figures", [Block::from(table)])
                .section("Arrivals", [Block::from(plot)]),
            json: serde_json::to_value(figures).map_err(|error| Error::Failed(error.to_string()))?,
        })
    }
}
