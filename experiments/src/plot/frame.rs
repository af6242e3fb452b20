//! The frame of a plot: grid, ticks, axis titles and lines, as inline SVG; and the legend below it.
//!
//! Six colours for a light page and six for a dark one, searched for so that any two stay apart under protanopia,
//! deuteranopia and tritanopia (simulated after Machado et al. 2009) and stand out from the page by a contrast of at
//! least 3; from the seventh series on the dash changes as well.

use std::fmt::Write as _;

use super::axis::Axis;
use super::text::{escape, escape_name};

/// Colours before the dash changes.
const NUM_COLOURS: usize = 6;
/// Series in one plot, at most; the table has the rest.
pub const SERIES_MAX: usize = 24;
/// Dashes, one for each round through the colours.
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// A plot to draw into.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Width of the whole, pixels.
    pub width: f64,
    /// Height of the whole, pixels.
    pub height: f64,
    /// Room left of the plot for its labels, pixels.
    pub left: f64,
    body: String,
}

const TOP: f64 = 12.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 44.0;

impl Frame {
    /// An empty plot.
    #[must_use]
    pub fn new(x: Axis, y: Axis, height: f64) -> Frame {
        Frame {
            x,
            y,
            width: 760.0,
            height,
            left: 64.0,
            body: String::new(),
        }
    }

    /// Horizontal pixel of `value`.
    #[must_use]
    pub fn px(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * (self.width - self.left - RIGHT)
    }

    /// Vertical pixel of `value`.
    #[must_use]
    pub fn py(&self, value: f64) -> f64 {
        self.height - BOTTOM - self.y.place(value) * (self.height - TOP - BOTTOM)
    }

    /// Draws a line through `points` as series number `series`; its name shows on hovering.
    pub fn line(&mut self, series: usize, name: &str, points: &[(f64, f64)]) {
        if points.is_empty() {
            return;
        }
        let mut path = String::new();
        for (position, &(x, y)) in points.iter().enumerate() {
            let command = if position == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.px(x), self.py(y));
        }
        let style = series_style(series);
        let _ = writeln!(
            self.body,
            "<path class=\"line\" {style} d=\"{path}\"><title>{}</title></path>",
            escape_name(name)
        );
    }

    /// Fills the area below a step function as series number `series`: each (x, y) holds until the next x.
    pub fn steps(&mut self, series: usize, name: &str, points: &[(f64, f64)]) {
        let Some(first) = points.first() else { return };
        let floor = self.height - BOTTOM;
        let mut path = format!("M{:.1} {floor:.1}", self.px(first.0));
        for &(x, y) in points {
            let _ = write!(path, "H{:.1}V{:.1}", self.px(x), self.py(y));
        }
        let _ = writeln!(
            self.body,
            "<path class=\"area\" fill=\"{}\" d=\"{path}V{floor:.1}Z\"><title>{}</title></path>",
            colour(series),
            escape_name(name)
        );
    }

    /// Draws a dashed level line at `y` with its name above the right end.
    pub fn level(&mut self, name: &str, y: f64) {
        let (y, right) = (self.py(y), self.width - RIGHT);
        let _ = writeln!(
            self.body,
            "<path class=\"baseline\" d=\"M{:.1} {y:.1}H{right:.1}\"/><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            self.left,
            right - 2.0,
            y - 4.0,
            escape_name(name)
        );
    }

    /// Adds ready SVG.
    pub fn add(&mut self, svg: &str) {
        self.body.push_str(svg);
    }

    /// The SVG element; `description` is read out in place of the picture.
    #[must_use]
    pub fn render(&self, description: &str) -> String {
        let (right, bottom) = (self.width - RIGHT, self.height - BOTTOM);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
            self.width,
            self.height,
            escape(description)
        );
        for (value, label) in &self.x.ticks {
            let x = self.px(*value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                escape(label)
            );
        }
        for (value, label) in &self.y.ticks {
            let y = self.py(*value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{:.1} {y:.1}H{right:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                self.left,
                self.left - 8.0,
                y + 4.0,
                escape(label)
            );
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{:.1} {bottom:.1}H{right:.1}\"/>\
             <text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            self.left,
            (self.left + right) / 2.0,
            self.height - 8.0,
            escape(&self.x.title)
        );
        if !self.y.title.is_empty() {
            let middle = (TOP + bottom) / 2.0;
            let _ = writeln!(
                svg,
                "<text class=\"title\" x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" \
                 transform=\"rotate(-90 14 {middle:.1})\">{}</text>",
                escape(&self.y.title)
            );
        }
        svg + &self.body + "</svg>\n"
    }
}

/// Colour of series number `series`, as a value of `fill` or `stroke`.
#[must_use]
pub fn colour(series: usize) -> String {
    format!("var(--s{})", series % NUM_COLOURS)
}

/// Attributes of series number `series`: colour, and dash from the seventh on.
#[must_use]
pub(crate) fn series_style(series: usize) -> String {
    let dash = DASHES[(series / NUM_COLOURS) % DASHES.len()];
    let colour = colour(series);
    if dash.is_empty() {
        format!("stroke=\"{colour}\"")
    } else {
        format!("stroke=\"{colour}\" stroke-dasharray=\"{dash}\"")
    }
}

/// A legend of `names` with their series numbers, in this order.
#[must_use]
pub fn legend(names: &[(usize, &str)]) -> String {
    let mut html = String::from("<ul class=\"legend\">\n");
    for (series, name) in names {
        let _ = writeln!(
            html,
            "<li><svg class=\"swatch\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"line\" {} \
             d=\"M1 5H27\"/></svg>{}</li>",
            series_style(*series),
            escape_name(name)
        );
    }
    html + "</ul>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_tests::assert_well_formed;

    #[test]
    fn a_frame_is_well_formed_whatever_the_names() {
        let mut frame = Frame::new(
            Axis::log_time("JCT <s>", 1.0, 1e5),
            Axis::linear("part", 0.0, 1.0),
            300.0,
        );
        frame.line(0, "</title><script>", &[(1.0, 0.0), (f64::NAN, 2.0), (1e9, 1.0)]);
        let svg = frame.render("\"quoted\" & more");
        assert_well_formed(&svg);
        assert!(!svg.contains("<script") && !svg.contains("NaN") && !svg.contains("inf"));
        assert_well_formed(&legend(&[(0, "<b>"), (9, "x")]));
    }

    #[test]
    fn the_seventh_series_has_the_first_colour_and_a_dash() {
        assert_eq!(series_style(6), "stroke=\"var(--s0)\" stroke-dasharray=\"7 4\"");
        let styles: std::collections::BTreeSet<String> = (0..SERIES_MAX).map(series_style).collect();
        assert_eq!(styles.len(), SERIES_MAX);
    }
}
