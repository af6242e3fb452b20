//! A plot drawn as a figure of HTML: caption, inline SVG, legend.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use super::axis::Scale;
use super::look::{colour, dash, dot, series_of};
use super::text::{width_of, wrapped};
use super::{Axis, Mark, Plot, SERIES_MAX, Shape};

/// Width of a plot, pixels: that of a phone.
const WIDTH: f64 = 420.0;
const RIGHT: f64 = 14.0;
/// Height of a line of text.
const LINE: f64 = 15.0;
/// Height of a plot without rows; of a row with a curve, and with a bar or an interval.
const HEIGHT: f64 = 190.0;
const CURVE: f64 = 36.0;
const BAR: f64 = 15.0;
/// Shortest part of a bar that has its number inside, pixels.
const LABELLED: f64 = 30.0;

/// The figure.
#[must_use]
pub(crate) fn markup(plot: &Plot) -> Markup {
    let names = plot.names();
    let shown = &names[..names.len().min(SERIES_MAX)];
    let looks = match plot.by_policy {
        true => series_of(shown.iter().copied()),
        false => (0..shown.len()).collect(),
    };
    let looks: BTreeMap<&str, usize> = shown.iter().copied().zip(looks).collect();
    let drawing = Drawing::of(plot, &looks);
    // Rows are named where they are.
    let in_rows = |mark: &Mark| {
        plot.rows
            .get(mark.row)
            .is_some_and(|(name, _)| *name == mark.name)
    };
    let needs_legend = shown.len() > 1 && !plot.marks.iter().all(in_rows);
    html! {
        figure {
            figcaption { (plot.title) }
            svg viewBox={ "0 0 " (WIDTH) " " (px(drawing.height())) } role="img" aria-label=(plot.title) {
                (drawing.axes())
                @for row in 0..plot.rows.len() { (drawing.row(row)) }
                @for mark in &plot.marks {
                    @if mark.shape == Shape::Rule { (drawing.rule(mark)) }
                    @else if mark.name.is_empty() { (drawing.mark(mark, None)) }
                    @else if let Some(look) = looks.get(mark.name.as_str()) { (drawing.mark(mark, Some(*look))) }
                }
                (drawing.rule_names())
            }
            @if needs_legend { (legend(shown.iter().map(|name| (looks[name], *name)), plot)) }
            @if names.len() > shown.len() {
                p.note { (names.len() - shown.len()) " more are in the table." }
            }
        }
    }
}

/// A legend of names with their looks, as they are drawn.
fn legend<'a>(names: impl Iterator<Item = (usize, &'a str)>, plot: &Plot) -> Markup {
    html! {
        ul.legend {
            @for (look, name) in names {
                @let shapes = || plot.marks.iter().filter(|mark| mark.name == name).map(|mark| mark.shape);
                li {
                    svg.swatch viewBox="0 0 28 12" aria-hidden="true" {
                        @if shapes().any(|shape| matches!(shape, Shape::Area | Shape::Boxes)) {
                            rect.bar fill=(colour(look)) x="8" width="12" height="12" {}
                        }
                        @if shapes().any(|shape| matches!(shape, Shape::Line | Shape::Steps | Shape::Interval)) {
                            path.line stroke=(colour(look)) stroke-dasharray=[dash(look)] d="M1 6H27" {}
                        }
                        @if shapes().any(|shape| matches!(shape, Shape::Dots | Shape::Interval)) {
                            path fill=(colour(look)) d={ "M14 6" (dot(look)) } {}
                        }
                    }
                    (name)
                }
            }
        }
    }
}

/// A tenth of a pixel is enough.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Where everything goes.
struct Drawing<'a> {
    plot: &'a Plot,
    x: Scale,
    y: Scale,
    left: f64,
    /// Top of the first band, height of its words and of the band itself.
    top: f64,
    words: f64,
    band: f64,
    /// Places, and lines, of the labels below.
    labels: Vec<(f64, Vec<String>)>,
    x_title: Vec<String>,
    y_title: Vec<String>,
}

impl<'a> Drawing<'a> {
    fn of(plot: &'a Plot, looks: &BTreeMap<&str, usize>) -> Drawing<'a> {
        let is_shown = |mark: &&Mark| {
            mark.shape == Shape::Rule || mark.name.is_empty() || looks.contains_key(mark.name.as_str())
        };
        let shown = Plot {
            marks: plot.marks.iter().filter(is_shown).cloned().collect(),
            ..Plot::default()
        };
        let x = plot.x.scale(shown.values(|point| point.0));
        let in_rows = !plot.rows.is_empty();
        let y = match in_rows {
            true => Axis::linear("", 0.0, 1.0).scale(std::iter::empty()),
            false => plot.y.scale(shown.values(|point| point.1)),
        };
        let has = |shapes: &[Shape]| plot.marks.iter().any(|mark| shapes.contains(&mark.shape));
        let widest = y.ticks.iter().map(|tick| width_of(&tick.1)).fold(10.0, f64::max);
        let y_title = if in_rows {
            Vec::new()
        } else {
            wrapped(&y.title, WIDTH - 8.0)
        };
        let mut drawing = Drawing {
            plot,
            left: if in_rows { 8.0 } else { widest + 10.0 },
            top: LINE * y_title.len() as f64 + if in_rows { 0.0 } else { 8.0 },
            words: if in_rows { LINE + 4.0 } else { 0.0 },
            band: match in_rows {
                true if has(&[Shape::Area, Shape::Line, Shape::Steps]) => CURVE,
                true => BAR,
                false => HEIGHT,
            },
            labels: Vec::new(),
            x_title: wrapped(&x.title, WIDTH - 8.0),
            x,
            y,
            y_title,
        };
        drawing.labels = drawing.labels();
        drawing
    }

    /// Labels below the plot that do not cover each other: all, or every so many; between names each may have several lines.
    fn labels(&self) -> Vec<(f64, Vec<String>)> {
        let ticks = &self.x.ticks;
        let places: Vec<f64> = ticks.iter().map(|tick| self.px(tick.0)).collect();
        let gap = places
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .fold(WIDTH, f64::min);
        let is_named = matches!(self.plot.x.unit, super::Unit::Names(_));
        let mut free_from = 0.0;
        let mut labels = Vec::new();
        let lines = |label: &str, room: f64| {
            if is_named {
                wrapped(label, room)
            } else {
                vec![label.to_string()]
            }
        };
        let width = |lines: &[String]| lines.iter().map(|line| width_of(line)).fold(0.0, f64::max);
        let fits = |every: &usize| {
            let room = gap * *every as f64 - 6.0;
            let mut shown = ticks.iter().step_by(*every);
            shown.all(|tick| width(&lines(&tick.1, room)) <= room)
        };
        let every = if is_named {
            (1..ticks.len()).find(fits).unwrap_or(ticks.len().max(1))
        } else {
            1
        };
        for ((_, label), x) in ticks.iter().zip(&places).step_by(every) {
            let lines = lines(label, gap * every as f64 - 6.0);
            let half = width(&lines) / 2.0;
            let x = x.min(WIDTH - half).max(half);
            if x - half >= free_from {
                free_from = x + half + 8.0;
                labels.push((x, lines));
            }
        }
        labels
    }

    fn bottom(&self) -> f64 {
        self.top + self.plot.rows.len().max(1) as f64 * (self.words + self.band)
    }

    fn below(&self) -> f64 {
        let lines = self.labels.iter().map(|label| label.1.len()).max().unwrap_or(0);
        self.bottom() + 4.0 + LINE * lines as f64
    }

    fn height(&self) -> f64 {
        self.below() + LINE * self.x_title.len() as f64 + 8.0
    }

    fn px(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * (WIDTH - RIGHT - self.left)
    }

    /// Floor of a row's band.
    fn floor(&self, row: usize) -> f64 {
        self.top + (row + 1) as f64 * (self.words + self.band)
    }

    fn py(&self, row: usize, value: f64) -> f64 {
        self.floor(row) - self.y.place(value) * self.band
    }

    /// Grid, labels and titles.
    fn axes(&self) -> Markup {
        let (left, right, bottom) = (self.left, WIDTH - RIGHT, self.bottom());
        let in_rows = !self.plot.rows.is_empty();
        let grid = |value: f64| format!("M{:.1} {:.1}V{bottom:.1}", self.px(value), self.top);
        html! {
            @for (value, _) in &self.x.ticks { path.grid d=(grid(*value)) {} }
            @for (x, lines) in &self.labels {
                @for (line, label) in lines.iter().enumerate() {
                    text.tick x=(px(*x)) y=(px(bottom + LINE * (line + 1) as f64)) text-anchor="middle" { (label) }
                }
            }
            @for (value, label) in self.y.ticks.iter().filter(|_| !in_rows) {
                @let y = self.py(0, *value);
                path.grid d=(format!("M{left:.1} {y:.1}H{right:.1}")) {}
                text.tick x=(px(left - 6.0)) y=(px(y + 4.0)) text-anchor="end" { (label) }
            }
            path.axis d=(format!("M{left:.1} {bottom:.1}H{right:.1}")) {}
            @for (line, title) in self.x_title.iter().enumerate() {
                @let half = width_of(title) / 2.0;
                @let middle = f64::midpoint(left, right).min(WIDTH - half).max(half);
                text.title x=(px(middle)) y=(px(self.below() + LINE * (line as f64 + 0.8))) text-anchor="middle" { (title) }
            }
            @for (line, title) in self.y_title.iter().enumerate() {
                text.title x="2" y=(px(LINE * (line as f64 + 0.8))) { (title) }
            }
        }
    }

    /// Name, remark and floor of a row.
    fn row(&self, row: usize) -> Markup {
        let (name, remark) = &self.plot.rows[row];
        let (floor, right) = (self.floor(row), WIDTH - RIGHT);
        let y = px(floor - self.band - 5.0);
        let room = WIDTH - RIGHT - self.left - width_of(remark) - 8.0;
        let name = wrapped(name, room).into_iter().next().unwrap_or_default();
        html! {
            text.name x=(px(self.left)) y=(y) { (name) }
            text.tick x=(px(right)) y=(y) text-anchor="end" { (remark) }
            @if self.band == CURVE { path.grid d=(format!("M{:.1} {floor:.1}H{right:.1}", self.left)) {} }
        }
    }

    /// Colour and dash of a look; pale without one.
    fn mark(&self, mark: &Mark, look: Option<usize>) -> Markup {
        let ink = look.map_or_else(|| "var(--rule)".to_string(), colour);
        let dashes = look.and_then(dash);
        let dot = look.map_or(super::look::dot(0), dot);
        let place = |point: &(f64, f64)| (self.px(point.0), self.py(mark.row, point.1));
        let places: Vec<(f64, f64)> = mark.points.iter().map(place).collect();
        let middle = places.get(places.len() / 2);
        html! {
            @match mark.shape {
                Shape::Line => path.line stroke=(ink) stroke-dasharray=[dashes] d=(joined(&places)) { title { (mark.name) } },
                Shape::Steps => path.line stroke=(ink) stroke-dasharray=[dashes] d=(stairs(&places)) { title { (mark.name) } },
                Shape::Area => path.area fill=(ink) d=(self.filled(mark.row, &places)) { title { (mark.name) } },
                Shape::Dots => @for ((x, y), point) in places.iter().zip(&mark.points) {
                    path fill=(ink) d=(format!("M{x:.1} {y:.1}{dot}")) { title { (self.said(mark, *point)) } }
                },
                Shape::Interval => {
                    path.line stroke=(ink) d=(joined(&places)) {}
                    @if let Some((x, y)) = middle {
                        path fill=(ink) d=(format!("M{x:.1} {y:.1}{dot}")) { title { (mark.name) } }
                    }
                },
                Shape::Boxes => @for (corners, points) in places.chunks_exact(2).zip(mark.points.chunks_exact(2)) {
                    (self.bar(mark, &ink, corners, points))
                },
                Shape::Rule => {},
            }
        }
    }

    fn bar(&self, mark: &Mark, ink: &str, corners: &[(f64, f64)], points: &[(f64, f64)]) -> Markup {
        let (from, to) = (corners[0], corners[1]);
        let (width, height) = ((to.0 - from.0).abs().max(0.5), (to.1 - from.1).abs());
        let (x, y) = (from.0.min(to.0), from.1.min(to.1));
        let in_rows = !self.plot.rows.is_empty();
        let value = if in_rows {
            points[1].0 - points[0].0
        } else {
            points[1].1
        };
        let shown = if in_rows {
            self.plot.x.show(value)
        } else {
            self.plot.y.show(value)
        };
        html! {
            rect.bar fill=(ink) x=(px(x)) y=(px(y)) width=(px(width)) height=(px(height)) {
                title { (mark.name) ": " (shown) }
            }
            @if in_rows && self.plot.x.unit == super::Unit::Percent && width >= LABELLED {
                text.inside x=(px(x + width / 2.0)) y=(px(y + height / 2.0 + 4.0)) text-anchor="middle" {
                    (format!("{:.0} %", 100.0 * value))
                }
            }
        }
    }

    /// `sjf: 1.2 h at 0.8`.
    fn said(&self, mark: &Mark, (x, y): (f64, f64)) -> String {
        format!(
            "{}: {} at {}",
            mark.name,
            self.plot.y.show(y),
            self.plot.x.show(x)
        )
    }

    /// From the floor, over the stairs, and back to it.
    fn filled(&self, row: usize, places: &[(f64, f64)]) -> String {
        let floor = self.floor(row);
        let first = places.first().map_or(0.0, |place| place.0);
        let from_floor: Vec<(f64, f64)> = [(first, floor)].iter().chain(places).copied().collect();
        format!("{}V{floor:.1}Z", stairs(&from_floor))
    }

    fn rule(&self, mark: &Mark) -> Markup {
        let (Some(first), Some(last)) = (mark.points.first(), mark.points.last()) else {
            return html! {};
        };
        let (x, y) = (self.px(first.0), self.py(mark.row, first.1));
        let path = match first.0 == last.0 {
            // Through all rows.
            true => format!("M{x:.1} {:.1}V{:.1}", self.top, self.bottom()),
            false => format!(
                "M{x:.1} {y:.1}L{:.1} {:.1}",
                self.px(last.0),
                self.py(mark.row, last.1)
            ),
        };
        html! { path.baseline d=(path) { title { (mark.name) } } }
    }

    /// Names of level rules above their right ends, moved apart where they would cover each other.
    fn rule_names(&self) -> Markup {
        let rules = self
            .plot
            .marks
            .iter()
            .filter(|mark| mark.shape == Shape::Rule && !mark.name.is_empty());
        let ends = rules
            .filter_map(|mark| Some((mark.name.as_str(), self.py(mark.row, mark.points.last()?.1) - 4.0)));
        let mut ends: Vec<(&str, f64)> = ends.collect();
        ends.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut below = f64::INFINITY;
        for (_, y) in &mut ends {
            *y = y.min(below - LINE);
            below = *y;
        }
        html! {
            @for (name, y) in ends { text.name x=(px(WIDTH - RIGHT - 2.0)) y=(px(y)) text-anchor="end" { (name) } }
        }
    }
}

fn joined(places: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (place, (x, y)) in places.iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if place == 0 { 'M' } else { 'L' });
    }
    path
}

fn stairs(places: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (place, (x, y)) in places.iter().enumerate() {
        let _ = match place {
            0 => write!(path, "M{x:.1} {y:.1}"),
            _ => write!(path, "H{x:.1}V{y:.1}"),
        };
    }
    path
}
