//! A plot drawn as a figure of HTML: caption, inline SVG, legend.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use super::axis::Scale;
use super::look::{colour, dash, dot, series_of};
use super::text::{width_of, wrapped};
use super::{Mark, Plot, SERIES_MAX, Shape, Unit};

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
    let is_in_row = |mark: &Mark| {
        plot.rows
            .get(mark.row)
            .is_some_and(|(name, _)| *name == mark.name)
    };
    let mut named = plot
        .marks
        .iter()
        .filter(|mark| looks.contains_key(mark.name.as_str()));
    let needs_legend = shown.len() > 1 && !named.all(is_in_row);
    html! {
        figure {
            figcaption { (plot.title) }
            svg viewBox={ "0 0 " (WIDTH) " " (px(drawing.height())) } role="img" aria-label=(plot.title) {
                (drawing.axes())
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

/// Words in a picture, from `x` on, up to it, or about it.
fn words(class: &str, (x, y): (f64, f64), anchor: &str, text: &str) -> Markup {
    html! { text class=(class) x=(px(x)) y=(px(y)) text-anchor=(anchor) { (text) } }
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
            true => Scale::new("", (0.0, 1.0), Vec::new()),
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

    /// Labels below the plot that do not cover each other: all, or every so many; names may have several lines each.
    fn labels(&self) -> Vec<(f64, Vec<String>)> {
        let places: Vec<f64> = self.x.ticks.iter().map(|tick| self.px(tick.0)).collect();
        let gap = places
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .fold(WIDTH, f64::min);
        let is_named = matches!(self.plot.x.unit, Unit::Names(_));
        let labels = |every: usize| {
            let room = gap * every as f64 - 8.0;
            let shown = self.x.ticks.iter().zip(&places).step_by(every);
            let labels = shown.map(move |((_, label), x)| match is_named {
                true => (*x, wrapped(label, room)),
                false => (*x, vec![label.clone()]),
            });
            (room, labels.collect::<Vec<(f64, Vec<String>)>>())
        };
        let width = |lines: &[String]| lines.iter().map(|line| width_of(line)).fold(0.0, f64::max);
        let fits = |every: &usize| {
            let (room, labels) = labels(*every);
            !is_named || labels.iter().all(|label| width(&label.1) <= room)
        };
        let every = (1..places.len()).find(fits).unwrap_or(places.len().max(1));
        let mut free_from = 0.0;
        let free = labels(every).1.into_iter().filter_map(|(x, lines)| {
            let half = width(&lines) / 2.0;
            let x = x.min(WIDTH - half - 3.0).max(half + 3.0);
            let is_free = is_named || x - half >= free_from;
            free_from = if is_free { x + half + 8.0 } else { free_from };
            is_free.then_some((x, lines))
        });
        free.collect()
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
        let level = |y: f64| format!("M{left:.1} {y:.1}H{right:.1}");
        let line = |number: usize| LINE * (number as f64 + 0.8);
        html! {
            @for (value, _) in &self.x.ticks {
                path.grid d=(format!("M{:.1} {:.1}V{bottom:.1}", self.px(*value), self.top)) {}
            }
            @for (x, lines) in &self.labels {
                @for (number, label) in lines.iter().enumerate() {
                    (words("tick", (*x, bottom + 3.0 + line(number)), "middle", label))
                }
            }
            @for (value, label) in &self.y.ticks {
                @let y = self.py(0, *value);
                path.grid d=(level(y)) {}
                (words("tick", (left - 6.0, y + 4.0), "end", label))
            }
            path.axis d=(level(bottom)) {}
            @for (number, title) in self.x_title.iter().enumerate() {
                @let half = width_of(title) / 2.0;
                @let middle = f64::midpoint(left, right).min(WIDTH - half).max(half);
                (words("title", (middle, self.below() + line(number)), "middle", title))
            }
            @for (number, title) in self.y_title.iter().enumerate() {
                (words("title", (2.0, line(number)), "start", title))
            }
            @for (row, (name, remark)) in self.plot.rows.iter().enumerate() {
                @let y = self.floor(row) - self.band - 5.0;
                @let room = right - left - width_of(remark) - 8.0;
                (words("name", (left, y), "start", wrapped(name, room).first().map_or("", String::as_str)))
                (words("tick", (right, y), "end", remark))
                @if self.band == CURVE { path.grid d=(level(self.floor(row))) {} }
            }
        }
    }

    /// A mark in the colour and dash of its look; pale without one.
    fn mark(&self, mark: &Mark, look: Option<usize>) -> Markup {
        let ink = look.map_or_else(|| "var(--rule)".to_string(), colour);
        let place = |point: &(f64, f64)| (self.px(point.0), self.py(mark.row, point.1));
        let places: Vec<(f64, f64)> = mark.points.iter().map(place).collect();
        let said = |point: &(f64, f64)| {
            let (x, y) = (self.plot.x.show(point.0), self.plot.y.show(point.1));
            format!("{}: {y} at {x}", mark.name)
        };
        let spot = |(x, y): (f64, f64), words: &str| {
            html! {
                path fill=(ink) d=(format!("M{x:.1} {y:.1}{}", dot(look.unwrap_or(0)))) { title { (words) } }
            }
        };
        let line = |path: String| {
            html! {
                path.line stroke=(ink) stroke-dasharray=[look.and_then(dash)] d=(path) { title { (mark.name) } }
            }
        };
        html! {
            @match mark.shape {
                Shape::Line => (line(joined(&places))),
                Shape::Steps => (line(stairs(&places))),
                Shape::Area => path.area fill=(ink) d=(self.filled(mark.row, &places)) { title { (mark.name) } },
                Shape::Dots => @for (place, point) in places.iter().zip(&mark.points) { (spot(*place, &said(point))) },
                Shape::Interval => {
                    (line(joined(&places)))
                    @if let Some(middle) = places.get(places.len() / 2) { (spot(*middle, &mark.name)) }
                },
                Shape::Boxes => @for (corners, points) in places.chunks_exact(2).zip(mark.points.chunks_exact(2)) {
                    (self.bar(mark, &ink, [corners[0], corners[1]], [points[0], points[1]]))
                },
                Shape::Rule => {},
            }
        }
    }

    /// A bar with its value: upright up to it, in a row as long as it.
    fn bar(
        &self,
        mark: &Mark,
        ink: &str,
        [from, to]: [(f64, f64); 2],
        [low, high]: [(f64, f64); 2],
    ) -> Markup {
        let (width, height) = ((to.0 - from.0).abs().max(0.5), (to.1 - from.1).abs());
        let (x, y) = (from.0.min(to.0), from.1.min(to.1));
        let in_rows = !self.plot.rows.is_empty();
        let shown = match in_rows {
            true => self.plot.x.show(high.0 - low.0),
            false => self.plot.y.show(high.1),
        };
        let is_part = in_rows && self.plot.x.unit == Unit::Percent && width >= LABELLED;
        html! {
            rect.bar fill=(ink) x=(px(x)) y=(px(y)) width=(px(width)) height=(px(height)) { title { (mark.name) ": " (shown) } }
            @if is_part {
                @let middle = (x + width / 2.0, y + height / 2.0 + 4.0);
                (words("inside", middle, "middle", &format!("{:.0} %", 100.0 * (high.0 - low.0))))
            }
        }
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
            @for (name, y) in ends { (words("name", (WIDTH - RIGHT - 2.0, y), "end", name)) }
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
