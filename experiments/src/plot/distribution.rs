//! Distributions of durations: which part is no longer than a time, logarithmic in time.

use super::axis::Axis;
use super::frame::{Frame, at_both_widths, legend};
use crate::evaluate::stats::quantile;

/// Points of one line, at most.
pub(crate) const CDF_POINTS_MAX: usize = 400;
/// Shortest time of jobs that has a place of its own, s.
pub(crate) const JOBS_LOW_S: f64 = 1.0;

/// One line: (value in seconds, part of the jobs), both ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve<'a> {
    /// Colour and dash.
    pub series: usize,
    /// Name in the legend.
    pub name: &'a str,
    /// Points, none for a line that is not drawn.
    pub points: Vec<(f64, f64)>,
}

/// Distributions of durations on a logarithmic axis, with a legend; none without a point. Times below `low_s` are drawn at the edge.
#[must_use]
pub fn plot(x: &str, y: &str, description: &str, low_s: f64, mut curves: Vec<Curve<'_>>) -> Option<String> {
    curves.retain(|curve| !curve.points.is_empty());
    let ends = curves
        .iter()
        .filter_map(|curve| Some((curve.points.first()?.0, curve.points.last()?.0)));
    let (low, high) = ends.fold((f64::INFINITY, low_s), |(low, high), (first, last)| {
        (low.min(first), high.max(last))
    });
    if curves.is_empty() {
        return None;
    }
    let parts = (0..=4)
        .map(|i| (0.25 * f64::from(i), format!("{} %", 25 * i)))
        .collect::<Vec<(f64, String)>>();
    let names: Vec<(usize, &str)> = curves.iter().map(|curve| (curve.series, curve.name)).collect();
    let drawn = at_both_widths(|width| {
        let time = Axis::log_time(x, low.max(low_s), high);
        let mut frame = Frame::new(time, Axis::fixed(y, 0.0, 1.0, parts.clone()), 360.0).wide(width);
        for curve in &curves {
            frame.line(curve.series, curve.name, &curve.points);
        }
        Some(frame.render(description))
    });
    Some(drawn? + &legend(&names))
}

/// The distribution of ascending values as at most [`CDF_POINTS_MAX`] quantiles.
#[must_use]
pub fn points(sorted: &[f64]) -> Vec<(f64, f64)> {
    let count = sorted.len().min(CDF_POINTS_MAX);
    let part = |i: usize| {
        if count > 1 {
            i as f64 / (count - 1) as f64
        } else {
            1.0
        }
    };
    (0..count)
        .filter_map(|i| Some((quantile(sorted, part(i))?, part(i))))
        .collect()
}
