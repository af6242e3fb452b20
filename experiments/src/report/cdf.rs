//! Which part of the jobs finished within a given time: one line for each policy, logarithmic in time.

use super::axis::Axis;
use super::frame::{Frame, SERIES_MAX, legend};
use crate::results::Results;
use crate::stats::quantile;

/// Points of one line, at most.
pub const CDF_POINTS_MAX: usize = 400;
/// Shortest time shown, seconds; shorter JCTs are drawn at the edge.
const LOW_S: f64 = 1.0;

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

/// The plot and its legend; none where no run kept its JCTs.
#[must_use]
pub fn render(results: &Results) -> Option<String> {
    let curves = results
        .policies()
        .take(SERIES_MAX)
        .enumerate()
        .map(|(series, (name, _))| Curve {
            series,
            name,
            points: curve(results, name),
        });
    plot(
        "job completion time (log scale)",
        "jobs finished within this time",
        "Distribution of job completion times, one line for each policy",
        curves.collect(),
    )
}

/// Distributions of durations on a logarithmic axis, with a legend; none without a point.
#[must_use]
pub fn plot(x: &str, y: &str, description: &str, mut curves: Vec<Curve<'_>>) -> Option<String> {
    curves.retain(|curve| !curve.points.is_empty());
    let ends = curves
        .iter()
        .filter_map(|curve| Some((curve.points.first()?.0, curve.points.last()?.0)));
    let (low, high) = ends.fold((f64::INFINITY, LOW_S), |(low, high), (first, last)| {
        (low.min(first), high.max(last))
    });
    if curves.is_empty() {
        return None;
    }
    let parts = (0..=4)
        .map(|i| (0.25 * f64::from(i), format!("{} %", 25 * i)))
        .collect();
    let mut frame = Frame::new(
        Axis::log_time(x, low.max(LOW_S), high),
        Axis::fixed(y, 0.0, 1.0, parts),
        360.0,
    );
    for curve in &curves {
        frame.line(curve.series, curve.name, &curve.points);
    }
    let names: Vec<(usize, &str)> = curves.iter().map(|curve| (curve.series, curve.name)).collect();
    Some(frame.render(description) + &legend(&names))
}

/// (JCT in seconds, part of the jobs) over all runs of `policy`, as at most [`CDF_POINTS_MAX`] quantiles.
fn curve(results: &Results, policy: &str) -> Vec<(f64, f64)> {
    let runs = results.runs().iter().filter(|run| run.policy == policy);
    let mut jct_s: Vec<f64> = runs.flat_map(|run| run.jct_s.iter().copied()).collect();
    jct_s.sort_by(f64::total_cmp);
    points(&jct_s)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::assert_well_formed;
    use crate::results::tests::run;

    #[test]
    fn a_long_run_is_thinned_and_keeps_its_ends() {
        let mut long = run("fifo", "w", 0, 100.0);
        long.jct_s = (1..=100_000).map(f64::from).collect();
        let results = Results::new("evaluate", vec![long], None).unwrap();
        let points = curve(&results, "fifo");
        assert_eq!(points.len(), CDF_POINTS_MAX);
        assert_eq!((points[0], points[399]), ((1.0, 0.0), (100_000.0, 1.0)));
        assert_well_formed(&render(&results).unwrap());
    }

    #[test]
    fn runs_without_jcts_give_no_plot_and_one_job_gives_one() {
        let mut none = run("fifo", "w", 0, 100.0);
        none.jct_s.clear();
        assert!(render(&Results::new("evaluate", vec![none.clone()], None).unwrap()).is_none());
        none.jct_s.push(0.0);
        assert_well_formed(&render(&Results::new("evaluate", vec![none], None).unwrap()).unwrap());
    }
}
