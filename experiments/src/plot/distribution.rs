//! Distributions for pages that still build their HTML by hand; new ones give [`Plot::distribution`] to a report.

use super::{Plot, markup};

pub use super::distribution_points as points;

/// One line: (value in seconds, part of all), both ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve<'a> {
    /// Not used: what a policy looks like follows from its name.
    pub series: usize,
    /// Name in the legend.
    pub name: &'a str,
    /// Points, none for a line that is not drawn.
    pub points: Vec<(f64, f64)>,
}

/// The figure; none without a point.
#[must_use]
pub fn plot(x: &str, y: &str, description: &str, low_s: f64, curves: Vec<Curve<'_>>) -> Option<String> {
    let curves = curves.into_iter().map(|curve| (curve.name, curve.points));
    let plot = Plot::distribution((description, x, y), low_s, curves)?;
    Some(markup(&plot.of_policies()).into_string())
}
