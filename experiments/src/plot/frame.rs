//! The frame of a plot: grid, ticks, axis titles and lines, as inline SVG; and the legend below it.
//!
//! Six colours for a light page and six for a dark one, searched for so that any two stay apart under protanopia,
//! deuteranopia and tritanopia (simulated after Machado et al. 2009) and stand out from the page by a contrast of at
//! least 3; from the seventh series on the dash changes as well.

use std::fmt::Write as _;

use super::axis::Axis;
use super::text::{escape, escape_name, width_of, wrapped};

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
/// Height of a line of text.
pub(crate) const LINE: f64 = 15.0;
/// Width of a plot, pixels.
pub const WIDTH: f64 = 760.0;
/// Width of the same plot for a phone: text keeps its size there.
pub const WIDTH_NARROW: f64 = 380.0;

/// A plot drawn twice, for a screen and for a phone; the page shows the one that has room.
#[must_use]
pub fn at_both_widths(draw: impl Fn(f64) -> Option<String>) -> Option<String> {
    let (broad, slim) = (draw(WIDTH)?, draw(WIDTH_NARROW)?);
    Some(format!(
        "<div class=\"broad\">\n{broad}</div>\n<div class=\"slim\">\n{slim}</div>\n"
    ))
}

impl Frame {
    /// An empty plot.
    #[must_use]
    pub fn new(x: Axis, y: Axis, height: f64) -> Frame {
        Frame {
            x,
            y,
            width: WIDTH,
            height,
            left: 64.0,
            body: String::new(),
        }
    }

    /// The same in another width, before anything is drawn.
    #[must_use]
    pub fn wide(self, width: f64) -> Frame {
        Frame { width, ..self }
    }

    /// Room above the plot: the lines of the vertical axis' title stand there, where none is cut.
    fn top(&self) -> f64 {
        TOP + LINE * wrapped(&self.y.title, self.width - 8.0).len() as f64
    }

    fn bottom(&self) -> f64 {
        let lines = wrapped(&self.x.title, self.width - 8.0).len().max(1);
        self.height - BOTTOM - LINE * (lines - 1) as f64
    }

    /// Horizontal pixel of `value`.
    #[must_use]
    pub fn px(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * (self.width - self.left - RIGHT)
    }

    /// Vertical pixel of `value`.
    #[must_use]
    pub fn py(&self, value: f64) -> f64 {
        let (top, bottom) = (self.top(), self.bottom());
        bottom - self.y.place(value) * (bottom - top)
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
        let floor = self.bottom();
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

    /// Draws dashed level lines with their names above the right end, moved apart where they would cover each other.
    pub fn levels(&mut self, levels: &[(&str, f64)]) {
        let mut placed: Vec<(&str, f64, f64)> = levels
            .iter()
            .map(|(name, y)| (*name, self.py(*y), self.py(*y) - 4.0))
            .collect();
        placed.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut below = f64::INFINITY;
        for (name, y, text_y) in placed {
            let text_y = text_y.min(below - LINE);
            below = text_y;
            self.level_at(name, y, text_y);
        }
    }

    /// Draws a dashed level line at `y` with its name above the right end.
    pub fn level(&mut self, name: &str, y: f64) {
        self.levels(&[(name, y)]);
    }

    fn level_at(&mut self, name: &str, y: f64, text_y: f64) {
        let right = self.width - RIGHT;
        let _ = writeln!(
            self.body,
            "<path class=\"baseline\" d=\"M{:.1} {y:.1}H{right:.1}\"/><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            self.left,
            right - 2.0,
            text_y,
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
        let (right, top, bottom) = (self.width - RIGHT, self.top(), self.bottom());
        let mut svg = format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
            self.width,
            self.height,
            escape(description)
        );
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in &self.x.ticks {
            let (x, half) = (self.px(*value), width_of(label) / 2.0);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>");
            // A label that would cover the one before it, or be cut, is left out.
            if x - half >= free_from && x + half <= self.width && x >= half {
                free_from = x + half + 8.0;
                let _ = write!(
                    svg,
                    "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    bottom + 16.0,
                    escape(label)
                );
            }
            svg.push('\n');
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
            "<path class=\"axis\" d=\"M{:.1} {bottom:.1}H{right:.1}\"/>",
            self.left
        );
        for (line, text) in wrapped(&self.x.title, self.width - 8.0).iter().enumerate() {
            // About the middle of the plot, and of the whole where that is too narrow.
            let half = width_of(text) / 2.0;
            let x = ((self.left + right) / 2.0).min(self.width - half).max(half);
            let y = bottom + 36.0 + LINE * line as f64;
            title(&mut svg, (x, y, "middle"), text);
        }
        for (line, text) in wrapped(&self.y.title, self.width - 8.0).iter().enumerate() {
            title(&mut svg, (4.0, TOP + LINE * line as f64, "start"), text);
        }
        svg + &self.body + "</svg>\n"
    }
}

fn title(svg: &mut String, (x, y, anchor): (f64, f64, &str), text: &str) {
    let text = escape(text);
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
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
