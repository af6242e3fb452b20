//! Curves of a reproduction as inline SVG.

use pleach_experiments::plot::axis::Axis;
use pleach_experiments::plot::frame::{Frame, SERIES_MAX, colour, legend};
use pleach_experiments::plot::text::escape;

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
/// Height of a lane, pixels.
const LANE: f64 = 16.0;

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

/// Something that took a lane for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Bars of a group are laid out in as many lanes as overlap.
    pub group: usize,
    /// Since when, in the unit of the axis.
    pub from: f64,
    /// Until when.
    pub to: f64,
    /// Its place in the legend.
    pub series: usize,
    /// Said on hovering.
    pub title: String,
}

/// Bars over time, each group in lanes of its own, the first above, cut at the ends of `span`. Bars come by their starts.
#[must_use]
pub fn lanes(x: &str, span: (f64, f64), groups: &[String], bars: &[Bar], names: &[&str]) -> String {
    // By group, where each lane is free again.
    let mut free: Vec<Vec<f64>> = vec![Vec::new(); groups.len()];
    let place = |bar: &Bar| {
        let lanes = &mut free[bar.group];
        let lane = lanes.iter().position(|free| *free <= bar.from);
        let lane = lane.unwrap_or_else(|| {
            lanes.push(0.0);
            lanes.len() - 1
        });
        lanes[lane] = bar.to;
        lane
    };
    let of_bars: Vec<usize> = bars.iter().map(place).collect();
    let before: Vec<usize> = free
        .iter()
        .scan(0, |sum, lanes| Some(std::mem::replace(sum, *sum + lanes.len())))
        .collect();
    let num: usize = free.iter().map(Vec::len).sum();
    if num == 0 {
        return String::new();
    }
    let y = |group: usize, lane: f64| num as f64 - before[group] as f64 - lane;
    let ticks = (0..groups.len()).map(|group| (y(group, 0.0), groups[group].clone()));
    let axis = Axis::fixed("", 0.0, num as f64, ticks.collect());
    let mut frame = Frame::new(Axis::linear(x, span.0, span.1), axis, 80.0 + LANE * num as f64);
    for (bar, lane) in bars.iter().zip(of_bars) {
        if bar.to <= span.0 || bar.from >= span.1 {
            continue;
        }
        let (left, right) = (frame.px(bar.from.max(span.0)), frame.px(bar.to.min(span.1)));
        let top = frame.py(y(bar.group, lane as f64 + 0.05));
        let height = frame.py(y(bar.group, lane as f64 + 0.95)) - top;
        frame.add(&format!(
            "<rect class=\"area\" fill=\"{}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}</title></rect>\n",
            colour(bar.series),
            (right - left - 0.5).max(0.5),
            escape(&bar.title),
        ));
    }
    let names: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
    frame.render(&format!("{} over {x}", groups.join(", "))) + &legend(&names)
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
    #[test]
    fn bars_that_overlap_have_lanes_of_their_own_and_are_cut_at_the_ends() {
        let bar = |group, from, to| Bar {
            group,
            from,
            to,
            series: 0,
            title: format!("{from} <to> {to}"),
        };
        let bars = [
            bar(0, 0.0, 6.0),
            bar(1, 1.0, 3.0),
            bar(0, 2.0, 4.0),
            bar(1, 3.0, 30.0),
            bar(0, 4.0, 5.0),
        ];
        let groups = ["a".to_string(), "b".to_string()];
        let html = lanes("time (ms)", (0.0, 10.0), &groups, &bars, &["in time"]);
        assert_well_formed(&html);
        let values = |name: &str| -> Vec<String> {
            let of = |part: &str| part.split('"').next().map(str::to_string);
            let parts = html
                .split("<rect")
                .skip(1)
                .filter_map(|rect| rect.split(&format!(" {name}=\"")).nth(1));
            parts.filter_map(of).collect()
        };
        let tops = values("y");
        // The second bar of `a` is below its first, the third in the lane that is free again; bars of `b` follow each other.
        assert_eq!(tops[2], tops[4]);
        assert_eq!(tops[1], tops[3]);
        assert!(tops[0] != tops[2] && tops[2] != tops[1]);
        assert!(html.contains("3 &lt;to&gt; 30"));
        assert_eq!(lanes("x", (0.0, 1.0), &groups, &[], &[]), "");
    }
}
