//! A comparison of routers as one HTML page: tables, hits over the rate, distributions of latencies.

use super::compare::{Comparison, Rates};
use crate::plot::axis::Axis;
use crate::plot::distribution::{Curve, plot};
use crate::plot::frame::{Frame, at_both_widths, legend};
use crate::plot::look::series_of;
use crate::report::page::{html_table, page, preformatted, section};

/// Shortest latency that has a place of its own in a plot, s.
const LOW_S: f64 = 0.01;

impl Rates {
    /// The page.
    #[must_use]
    pub fn html(&self, command_line: &str) -> String {
        let mut body = String::from("<h1>Routers</h1>\n");
        let over = self.table().map(|table| html_table(&table) + &self.hits());
        section(&mut body, "Hits over the rate", over);
        for (_, comparison) in &self.0 {
            let heading = format!("{:.0} requests a second", comparison.rate_per_s);
            let plots = [
                latencies(comparison, "time to the first token", |row| &row.ttft_s),
                latencies(comparison, "time between tokens", |row| &row.tpot_s),
            ];
            let plots: String = plots.into_iter().flatten().collect();
            section(
                &mut body,
                &heading,
                Some(html_table(&comparison.table()) + &plots),
            );
        }
        section(&mut body, "How this was made", Some(preformatted(command_line)));
        page("Routers", &body)
    }

    fn hits(&self) -> String {
        let rates = || self.0.iter().map(|(_, at)| at.rate_per_s);
        let (low, high) = rates().fold((f64::INFINITY, 0.0_f64), |(low, high), rate| {
            (low.min(rate), high.max(rate))
        });
        let all = self.0.iter().flat_map(|(_, at)| &at.routers);
        // From a whole ten on, so that routers that are close are seen apart.
        let least = 10.0 * (all.map(|row| row.hits_pct).fold(100.0, f64::min) / 10.0).floor();
        let names: Vec<&str> = self.0[0]
            .1
            .routers
            .iter()
            .map(|row| row.router.as_str())
            .collect();
        let looks = series_of(names.iter().copied());
        let drawn = at_both_widths(|width| {
            let rate = Axis::linear("requests a second", low, high);
            let mut frame =
                Frame::new(rate, Axis::linear("within both targets (%)", least, 100.0), 320.0).wide(width);
            for (place, (name, series)) in names.iter().zip(&looks).enumerate() {
                let points: Vec<(f64, f64)> = self
                    .0
                    .iter()
                    .map(|(_, at)| (at.rate_per_s, at.routers[place].hits_pct))
                    .collect();
                frame.line(*series, name, &points);
            }
            Some(frame.render("Requests within both targets over the rate, one line for each router"))
        });
        let legends: Vec<(usize, &str)> = looks.iter().copied().zip(names.iter().copied()).collect();
        drawn.unwrap_or_default() + &legend(&legends)
    }
}

fn latencies<'a>(
    comparison: &'a Comparison,
    what: &str,
    points: impl Fn(&'a super::RouterRow) -> &'a Vec<(f64, f64)>,
) -> Option<String> {
    let rows = &comparison.routers;
    let looks = series_of(rows.iter().map(|row| row.router.as_str()));
    let curves = rows.iter().zip(looks).map(|(row, series)| Curve {
        series,
        name: &row.router,
        points: points(row).clone(),
    });
    let description = format!("Distribution of the {what}, one line for each router");
    plot(
        &format!("{what} (log scale)"),
        "requests within this time",
        &description,
        LOW_S,
        curves.collect(),
    )
}
