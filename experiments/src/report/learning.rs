//! The learning curve: a metric over the steps trained, with heuristics as level lines to beat.

use crate::plot::axis::Axis;
use crate::plot::frame::{Frame, SERIES_MAX, at_both_widths, legend};
use crate::plot::look::series_of;
use crate::plot::series::thin;

/// Points of one series, at most.
pub(crate) const LEARNING_POINTS_MAX: usize = 500;

/// Series of a metric over training.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearningCurve {
    /// What goes up or down, with its unit: `average JCT (h)`.
    pub metric: String,
    /// Name and (environment steps, value) by steps.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
    /// Name and value of what does not learn.
    pub baselines: Vec<(String, f64)>,
}

/// The plot; none where there is no point.
#[must_use]
pub fn render(curve: &LearningCurve) -> Option<String> {
    at_both_widths(|width| draw(curve, width))
}

fn draw(curve: &LearningCurve, width: f64) -> Option<String> {
    let finite = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        points
            .iter()
            .filter(|point| point.0.is_finite() && point.1.is_finite())
            .copied()
            .collect()
    };
    let series: Vec<(&str, Vec<(f64, f64)>)> = curve
        .series
        .iter()
        .take(SERIES_MAX)
        .map(|(name, points)| (name.as_str(), thin(&finite(points), LEARNING_POINTS_MAX)))
        .filter(|(_, points)| !points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    let baselines: Vec<&(String, f64)> = curve
        .baselines
        .iter()
        .filter(|baseline| baseline.1.is_finite())
        .take(SERIES_MAX)
        .collect();
    let points = || series.iter().flat_map(|(_, points)| points.iter());
    let values = || {
        points()
            .map(|point| point.1)
            .chain(baselines.iter().map(|baseline| baseline.1))
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let steps = points().map(|point| point.0).fold(0.0, f64::max);
    let mut frame = Frame::new(
        Axis::linear("environment steps", 0.0, steps),
        Axis::linear(&curve.metric, low.min(high), high),
        320.0,
    )
    .wide(width);
    let levels: Vec<(&str, f64)> = baselines
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    frame.levels(&levels);
    let looks = series_of(series.iter().map(|(name, _)| *name));
    let names: Vec<(usize, &str)> = looks
        .into_iter()
        .zip(series.iter().map(|(name, _)| *name))
        .collect();
    for ((look, name), (_, points)) in names.iter().zip(&series) {
        frame.line(*look, name, points);
    }
    Some(frame.render(&format!("{} over environment steps", curve.metric)) + &legend(&names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_tests::assert_well_formed;

    #[test]
    fn a_curve_is_well_formed_bounded_and_skips_what_is_not_a_number() {
        let mut points: Vec<(f64, f64)> = (0..10_000)
            .map(|i| (f64::from(i), 1.0 / f64::from(i + 1)))
            .collect();
        points[5].1 = f64::NAN;
        let curve = LearningCurve {
            metric: "average JCT (h)".into(),
            series: vec![("<ppo>".into(), points)],
            baselines: vec![("srtf".into(), 0.4), ("broken".into(), f64::INFINITY)],
        };
        let svg = render(&curve).unwrap();
        assert_well_formed(&svg);
        assert!(svg.contains("srtf") && !svg.contains("broken") && !svg.contains("NaN"));
        assert!(svg.len() < 60_000, "{}", svg.len());
        assert!(render(&LearningCurve::default()).is_none());
    }
}
