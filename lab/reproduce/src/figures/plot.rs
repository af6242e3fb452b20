//! Curves of a reproduction.

use pleach_experiments::plot::{Axis, Mark, Plot};

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

/// Curves over linear axes; the vertical one begins at zero and is cut at `y_max`, if given.
#[must_use]
pub fn lines(x: &str, y: &str, series: &[Series], y_max: Option<f64>) -> Plot {
    let cut = |point: &(f64, f64)| {
        (
            point.0,
            y_max.map_or(point.1, |most| if point.1 > most { most } else { point.1 }),
        )
    };
    let line = |one: &Series| Mark::line(&one.name, one.points.iter().map(cut));
    let from_zero = Axis::of(y).from_zero();
    Plot::new(format!("{y} over {x}"), Axis::of(x), from_zero).with(series.iter().map(line))
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
}

/// Bars over time, each group in lanes of its own, the first above, cut at the ends of `span`. Bars come by their starts.
#[must_use]
pub fn lanes(x: &str, span: (f64, f64), groups: &[String], bars: &[Bar], names: &[&str]) -> Plot {
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
    let rows = free.iter().zip(groups).flat_map(|(lanes, name)| {
        let name = |lane: usize| if lane == 0 { name.clone() } else { String::new() };
        (0..lanes.len()).map(move |lane| (name(lane), String::new(), Vec::new()))
    });
    let shown = bars
        .iter()
        .zip(of_bars)
        .filter(|(bar, _)| bar.to > span.0 && bar.from < span.1);
    let marks = shown.map(|(bar, lane)| Mark {
        row: before[bar.group] + lane,
        ..Mark::boxes(
            names.get(bar.series).unwrap_or(&""),
            [(bar.from, 0.05), (bar.to, 0.95)],
        )
    });
    Plot::new(
        format!("{} over {x}", groups.join(", ")),
        Axis::linear(x, span.0, span.1),
        Axis::default(),
    )
    .with_rows(rows)
    .with(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_cut_and_named_and_holes_are_left_out() {
        let series = [
            Series::new("a", vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 900.0)]),
            Series::new("c", vec![(0.0, 2.0), (2.0, 3.0)]),
        ];
        let plot = lines("load (jobs/h)", "JCT (h)", &series, Some(10.0));
        assert_eq!((plot.marks[0].name.as_str(), plot.marks.len()), ("a", 2));
        assert_eq!(plot.marks[0].points, [(0.0, 1.0), (2.0, 10.0)]);
    }

    #[test]
    fn bars_that_overlap_have_lanes_of_their_own_and_are_cut_at_the_ends() {
        let bar = |group, from, to| Bar {
            group,
            from,
            to,
            series: 0,
        };
        let bars = [
            bar(0, 0.0, 6.0),
            bar(1, 1.0, 3.0),
            bar(0, 2.0, 4.0),
            bar(1, 3.0, 30.0),
            bar(0, 4.0, 5.0),
            bar(0, 11.0, 12.0),
        ];
        let groups = ["a".to_string(), "b".to_string()];
        let plot = lanes("time (ms)", (0.0, 10.0), &groups, &bars, &["in time"]);
        // The second bar of `a` is below its first, the third in the lane that is free again; bars of `b` follow each other.
        let rows: Vec<usize> = plot.marks.iter().map(|mark| mark.row).collect();
        assert_eq!(rows, [0, 2, 1, 2, 1]);
        let names: Vec<&str> = plot.rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(names, ["a", "", "b"]);
    }
}
