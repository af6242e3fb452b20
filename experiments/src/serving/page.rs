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
        let rates: Vec<f64> = self.0.iter().map(|(_, at)| at.rate_per_s).collect();
        let names = self.0[0].1.routers.iter().map(|row| row.router.as_str());
        let lines = Lines {
            x: "requests a second",
            at: &rates,
            names: names.collect(),
            is_share: true,
        };
        lines.plot(
            "within both targets (%)",
            "Requests within both targets over the rate, one line for each router",
            |at, router| self.0[at].1.routers[router].hits_pct,
        )
    }
}

/// Figures over something, one line for each policy.
pub(super) struct Lines<'a> {
    /// Of what, and where.
    pub x: &'a str,
    pub at: &'a [f64],
    /// Of the policies.
    pub names: Vec<&'a str>,
    /// Figures are up to 100 %, and the axis begins at a whole ten; else it begins at 0.
    pub is_share: bool,
}

impl Lines<'_> {
    /// The plot with its legend; figures that are not finite are left out.
    pub(super) fn plot(&self, y: &str, description: &str, figure: impl Fn(usize, usize) -> f64) -> String {
        let (low, high) = (self.at.iter()).fold((f64::INFINITY, 0.0_f64), |(low, high), at| {
            (low.min(*at), high.max(*at))
        });
        let of = |policy: usize| -> Vec<(f64, f64)> {
            let all = self
                .at
                .iter()
                .enumerate()
                .map(|(place, at)| (*at, figure(place, policy)));
            all.filter(|(_, value)| value.is_finite()).collect()
        };
        let lines: Vec<Vec<(f64, f64)>> = (0..self.names.len()).map(of).collect();
        let all = || lines.iter().flatten().map(|point| point.1);
        let (least, most) = if self.is_share {
            // From a whole ten on, so that policies that are close are seen apart.
            (10.0 * (all().fold(100.0, f64::min) / 10.0).floor(), 100.0)
        } else {
            (0.0, all().fold(0.0, f64::max))
        };
        let looks = series_of(self.names.iter().copied());
        let drawn = at_both_widths(|width| {
            let x = Axis::linear(self.x, low, high);
            let mut frame = Frame::new(x, Axis::linear(y, least, most), 320.0).wide(width);
            for ((name, series), points) in self.names.iter().zip(&looks).zip(&lines) {
                frame.line(*series, name, points);
            }
            Some(frame.render(description))
        });
        let legends: Vec<(usize, &str)> = looks.iter().copied().zip(self.names.iter().copied()).collect();
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
