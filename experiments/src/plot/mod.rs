//! Plots as inline SVG: the same bytes on every machine, no script, no font, a bounded size. Every page draws with this grammar.
//!
//! A [`Plot`] is data: two [`Axis`]es, whose ends come from the data, and [`Mark`]s, which name their series and how it is drawn.
//! Where it has rows, each row is a band with a name and the marks of that band; all share the horizontal axis. What a policy
//! looks like follows from its name. A plot is drawn for 420 px, so its text can be read on a phone, and pages set several
//! beside each other where there is room.

pub mod axis;
pub(crate) mod look;
pub(crate) mod series;
mod svg;
mod text;

use serde::{Deserialize, Serialize};

pub use axis::{Axis, Unit};
use series::{averaged, quantiles, thin};
pub(crate) use svg::markup;
pub(crate) use text::clean;

/// Points of one series, at most.
pub(crate) const POINTS_MAX: usize = 400;
/// Series in one plot, at most; the table has the rest.
pub const SERIES_MAX: usize = 24;

/// A plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What is to be seen, in a line above the picture, which is read out in its place.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; of rows it goes from 0 to 1 and is not shown.
    pub y: Axis,
    /// Name and remark of each row; empty for a plot without rows.
    pub rows: Vec<(String, String)>,
    /// What is drawn, the first lowest.
    pub marks: Vec<Mark>,
    /// Whether series are policies, which look the same on every page.
    pub by_policy: bool,
}

/// One series, or a part of one: marks of the same name look the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Name in the legend; without one it is drawn pale.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// Place of its row.
    pub row: usize,
    /// Horizontal and vertical values.
    pub points: Vec<(f64, f64)>,
}

/// How the points of a mark are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Joined.
    Line,
    /// As steps, each value until the next point.
    Steps,
    /// As steps, filled down to the floor.
    Area,
    /// Two corners of a box each.
    Boxes,
    /// A dot each.
    Dots,
    /// From the first to the last, with a dot at the middle one.
    Interval,
    /// A dashed line from the first to the last with its name at the end; infinite values are the ends of the axis.
    Rule,
}

impl Plot {
    /// A plot without marks.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Plot {
        Plot {
            title: title.into(),
            x,
            y,
            ..Plot::default()
        }
    }

    /// The same of policies.
    #[must_use]
    pub fn of_policies(mut self) -> Plot {
        self.by_policy = true;
        self
    }

    /// The same with marks.
    #[must_use]
    pub fn with(mut self, marks: impl IntoIterator<Item = Mark>) -> Plot {
        self.marks.extend(marks);
        self
    }

    /// The same with rows: name, remark and marks of each.
    #[must_use]
    pub fn with_rows(mut self, rows: impl IntoIterator<Item = (String, String, Vec<Mark>)>) -> Plot {
        for (name, remark, marks) in rows {
            let row = self.rows.len();
            self.rows.push((name, remark));
            self.marks
                .extend(marks.into_iter().map(|mark| Mark { row, ..mark }));
        }
        self
    }

    /// The plot, where something is to be drawn but rules.
    #[must_use]
    pub fn if_any(self) -> Option<Plot> {
        let is_there = |mark: &Mark| mark.shape != Shape::Rule && !mark.points.is_empty();
        self.marks.iter().any(is_there).then_some(self)
    }

    /// Distributions of durations, logarithmic from `low_s` on, a line for each name and ascending values; none without a value.
    #[must_use]
    pub fn distribution<'a>(
        (title, x, y): (&str, &str, &str),
        low_s: f64,
        curves: impl IntoIterator<Item = (&'a str, Vec<(f64, f64)>)>,
    ) -> Option<Plot> {
        let marks: Vec<Mark> = curves
            .into_iter()
            .map(|(name, points)| Mark::line(name, points))
            .collect();
        let (least, most) = axis::ends(marks.iter().flat_map(|mark| &mark.points).map(|point| point.0));
        let high = most.max(low_s * 2.0);
        let x = Axis::of(x)
            .seconds()
            .log()
            .within(least.max(low_s).min(high / 2.0), high);
        Plot::new(title, x, Axis::of(y).percent().within(0.0, 1.0))
            .with(marks)
            .if_any()
    }

    /// Upright bars in groups, one for each label, of which each name has one value; values that are not finite are left out.
    #[must_use]
    pub fn bars(
        title: &str,
        x: &str,
        y: Axis,
        labels: Vec<String>,
        series: &[(&str, Vec<f64>)],
    ) -> Option<Plot> {
        let width = 0.8 / series.len().max(1) as f64;
        let marks = series.iter().enumerate().map(|(place, (name, values))| {
            let from = |group: usize| group as f64 + 0.1 + width * place as f64;
            let boxes = values.iter().enumerate();
            let boxes = boxes.flat_map(|(group, value)| [(from(group), 0.0), (from(group) + width, *value)]);
            Mark::boxes(name, boxes)
        });
        let marks: Vec<Mark> = marks.collect();
        Plot::new(title, Axis::of(x).names(labels), y.from_zero())
            .with(marks)
            .if_any()
    }

    /// Level bars of one length, each divided into parts of 1: name, remark and (name, part) of each; bars without a part are left
    /// out.
    #[must_use]
    pub fn divided(
        title: &str,
        bars: impl IntoIterator<Item = (String, String, Vec<(String, f64)>)>,
    ) -> Option<Plot> {
        let rows = bars.into_iter().filter_map(|(name, remark, parts)| {
            let mut from = 0.0;
            let boxes = parts.into_iter().filter_map(|(name, part)| {
                let part = if part.is_finite() {
                    part.clamp(0.0, 1.0 - from)
                } else {
                    0.0
                };
                from += part;
                (part > 0.0).then(|| Mark::boxes(&name, [(from - part, 0.0), (from, 1.0)]))
            });
            let marks: Vec<Mark> = boxes.collect();
            (!marks.is_empty()).then_some((name, remark, marks))
        });
        let x = Axis::default().percent().within(0.0, 1.0);
        Plot::new(title, x, Axis::default()).with_rows(rows).if_any()
    }

    /// Every finite horizontal or vertical value.
    fn values(&self, of: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
        self.marks.iter().flat_map(|mark| &mark.points).map(of)
    }

    /// Names of series in the order of their marks, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for mark in self.marks.iter().filter(|mark| mark.shape != Shape::Rule) {
            if !mark.name.is_empty() && !names.contains(&mark.name.as_str()) {
                names.push(&mark.name);
            }
        }
        names
    }
}

impl Mark {
    fn new(name: &str, shape: Shape, points: impl IntoIterator<Item = (f64, f64)>) -> Mark {
        let points = finite(points);
        Mark {
            name: clean(name),
            shape,
            row: 0,
            points: match shape {
                Shape::Steps | Shape::Area => averaged(&points, POINTS_MAX),
                _ => thin(&points, POINTS_MAX),
            },
        }
    }

    /// A line; points that are no numbers are left out, and a long one is thinned.
    #[must_use]
    pub fn line(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Mark {
        Mark::new(name, Shape::Line, points)
    }

    /// Steps; many are averaged over time.
    #[must_use]
    pub fn steps(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Mark {
        Mark::new(name, Shape::Steps, points)
    }

    /// Steps that are filled.
    #[must_use]
    pub fn area(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Mark {
        Mark::new(name, Shape::Area, points)
    }

    /// Dots.
    #[must_use]
    pub fn dots(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Mark {
        Mark::new(name, Shape::Dots, points)
    }

    /// Boxes by pairs of corners; those with a corner that is no number are left out, and more than 200.
    #[must_use]
    pub fn boxes(name: &str, corners: impl IntoIterator<Item = (f64, f64)>) -> Mark {
        let corners: Vec<(f64, f64)> = corners.into_iter().collect();
        let whole = |pair: &&[(f64, f64)]| finite(pair.iter().copied()).len() == 2;
        let pairs = corners.chunks(2).filter(whole).take(POINTS_MAX / 2);
        Mark::new(name, Shape::Boxes, pairs.flatten().copied())
    }

    /// A value with its interval, where it has one, in the middle of a row.
    #[must_use]
    pub fn interval(name: &str, value: f64, ends: Option<(f64, f64)>) -> Mark {
        let (low, high) = ends.unwrap_or((value, value));
        Mark::new(
            name,
            Shape::Interval,
            finite([low, value, high].map(|x| (x, 0.5))),
        )
    }

    /// A dashed line between two points.
    #[must_use]
    pub fn rule(name: &str, from: (f64, f64), to: (f64, f64)) -> Mark {
        Mark {
            points: vec![from, to],
            ..Mark::new(name, Shape::Rule, [])
        }
    }

    /// A dashed level over the whole width, with its name.
    #[must_use]
    pub fn level(name: &str, y: f64) -> Mark {
        Mark::rule(name, (f64::NEG_INFINITY, y), (f64::INFINITY, y))
    }
}

fn finite(points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let both = |point: &(f64, f64)| point.0.is_finite() && point.1.is_finite();
    points.into_iter().filter(both).collect()
}

/// The distribution of ascending values as points of a line.
#[must_use]
pub fn distribution_points(sorted: &[f64]) -> Vec<(f64, f64)> {
    quantiles(sorted, POINTS_MAX)
}

#[cfg(test)]
mod tests;
