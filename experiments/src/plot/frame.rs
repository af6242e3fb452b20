//! A plot that is drawn into step by step: what pages that still build their HTML by hand need of [`Plot`]. New pages give a `Plot` to
//! a [`Report`](crate::report::Report).

use super::{Axis, Mark, Plot, markup};

/// Width of a plot, pixels.
pub const WIDTH: f64 = 420.0;

/// A plot under construction.
#[derive(Clone, Debug)]
pub struct Frame(Plot);

/// Draws once: a plot fits every width.
#[must_use]
pub fn at_both_widths(draw: impl Fn(f64) -> Option<String>) -> Option<String> {
    draw(WIDTH)
}

impl Frame {
    /// An empty plot.
    #[must_use]
    pub fn new(x: Axis, y: Axis, _height: f64) -> Frame {
        Frame(Plot::new("", x, y).of_policies())
    }

    /// The same.
    #[must_use]
    pub fn wide(self, _width: f64) -> Frame {
        self
    }

    /// Adds a line.
    pub fn line(&mut self, _series: usize, name: &str, points: &[(f64, f64)]) {
        self.0.marks.push(Mark::line(name, points.iter().copied()));
    }

    /// Adds filled steps.
    pub fn steps(&mut self, _series: usize, name: &str, points: &[(f64, f64)]) {
        self.0.marks.push(Mark::area(name, points.iter().copied()));
    }

    /// The figure with its legend.
    #[must_use]
    pub fn render(self, description: &str) -> String {
        let plot = Plot {
            title: description.to_string(),
            ..self.0
        };
        markup(&plot).into_string()
    }
}

/// Nothing: a figure has its legend.
#[must_use]
pub fn legend(_names: &[(usize, &str)]) -> String {
    String::new()
}
