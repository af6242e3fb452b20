//! Curves of a reproduction as inline SVG.

use pleach_experiments::plot::axis::Axis;
use pleach_experiments::plot::frame::{Frame, SERIES_MAX, legend};

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points by ascending x.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A curve.
    #[must_use]
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            name: name.into(),
            points,
        }
    }
}

/// Height of a plot, pixels.
const HEIGHT: f64 = 320.0;

/// Curves over linear axes; the vertical one begins at zero and is cut at `y_max`, if given. Empty without a finite point.
#[must_use]
pub fn lines(x: &str, y: &str, series: &[Series], y_max: Option<f64>) -> String {
    let cut = y_max.unwrap_or(f64::INFINITY);
    let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
    let points = || series.iter().flat_map(|series| &series.points).filter(finite);
    if points().next().is_none() {
        return String::new();
    }
    let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let top = points().map(|point| point.1.min(cut)).fold(0.0, f64::max);
    let mut frame = Frame::new(Axis::linear(x, low, high), Axis::linear(y, 0.0, top), HEIGHT);
    for (number, series) in series.iter().enumerate().take(SERIES_MAX) {
        let points: Vec<(f64, f64)> = series
            .points
            .iter()
            .filter(finite)
            .map(|point| (point.0, point.1.min(cut)))
            .collect();
        frame.line(number, &series.name, &points);
    }
    let names: Vec<(usize, &str)> = series
        .iter()
        .enumerate()
        .take(SERIES_MAX)
        .map(|(number, series)| (number, series.name.as_str()))
        .collect();
    frame.render(&format!("{y} over {x}")) + &legend(&names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_tests::assert_well_formed;

    #[test]
    fn curves_are_drawn_cut_and_named_and_holes_are_left_out() {
        let series = [
            Series::new("a <b>", vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 900.0)]),
            Series::new("c", vec![(0.0, 2.0), (2.0, 3.0)]),
        ];
        let html = lines("load (jobs/h)", "JCT (h)", &series, Some(10.0));
        assert_well_formed(&html);
        assert!(html.contains("a &lt;b&gt;") && !html.contains("NaN"));
        assert_eq!(lines("x", "y", &[], None), "");
    }
}
