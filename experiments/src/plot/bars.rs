//! Bars: groups of them beside each other, and whole bars divided into parts.

use std::fmt::Write as _;

use super::axis::Axis;
use super::frame::{Frame, colour};
use super::text::{escape, escape_name};

/// Groups in one plot, at most.
pub(crate) const GROUPS_MAX: usize = 60;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 110.0;
const ROW: f64 = 30.0;
const BAR: f64 = 20.0;
/// Smallest part that is labelled.
const LABELLED: f64 = 0.06;

/// One colour of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars<'a> {
    /// Name in the legend.
    pub name: &'a str,
    /// One for each group; what is not finite is left out.
    pub values: Vec<f64>,
}

/// Upright bars, one group for each label; at most [`GROUPS_MAX`] groups. Percentages where `percent`. None without a group.
#[must_use]
pub fn grouped(x: &str, y: &str, labels: &[String], bars: &[Bars<'_>], percent: bool) -> Option<String> {
    let num = labels.len().min(GROUPS_MAX);
    let values = bars.iter().flat_map(|bars| bars.values.iter().take(num));
    let most = values
        .copied()
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    if num == 0 || bars.is_empty() {
        return None;
    }
    // Every so many labels, so that they do not run into each other.
    let longest = labels
        .iter()
        .take(num)
        .map(|label| label.chars().count())
        .max()
        .unwrap_or(1);
    let every = (num * (longest + 2)).div_ceil(96);
    let ticks = labels[..num]
        .iter()
        .enumerate()
        .filter(|(group, _)| group % every == 0);
    let ticks = ticks
        .map(|(group, label)| (group as f64 + 0.5, label.clone()))
        .collect();
    let mut vertical = Axis::linear(y, 0.0, if most > 0.0 { most } else { 1.0 });
    if percent {
        for (value, label) in &mut vertical.ticks {
            *label = format!("{:.0} %", 100.0 * *value);
        }
    }
    let mut frame = Frame::new(Axis::fixed(x, 0.0, num as f64, ticks), vertical, 240.0);
    let width = 0.8 / bars.len() as f64;
    for (series, one) in bars.iter().enumerate() {
        let mut svg = String::new();
        for (group, value) in one
            .values
            .iter()
            .take(num)
            .enumerate()
            .filter(|(_, value)| value.is_finite())
        {
            let from = frame.px(group as f64 + 0.1 + width * series as f64);
            let to = frame.px(group as f64 + 0.1 + width * (series + 1) as f64);
            let (top, floor) = (frame.py(*value), frame.py(0.0));
            let shown = if percent {
                format!("{:.1} %", 100.0 * value)
            } else {
                crate::evaluate::metric::show_plain(*value)
            };
            let _ = writeln!(
                svg,
                "<rect class=\"bar\" fill=\"{}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                 <title>{}: {shown}</title></rect>",
                colour(series),
                (to - from).max(0.5),
                (floor - top).max(0.0),
                escape_name(&format!("{} {}", labels[group], one.name)),
            );
        }
        frame.add(&svg);
    }
    let names: Vec<&str> = bars.iter().map(|bars| bars.name).collect();
    let legend = if names.len() > 1 {
        legend(&names)
    } else {
        String::new()
    };
    Some(frame.render(&format!("{y} by {x}")) + &legend)
}

/// Level bars of one length, each divided into `parts` (name, one part for each bar, 0 to 1) and with a remark behind it.
/// Bars without a part are left out; none without a bar.
#[must_use]
pub fn divided(description: &str, rows: &[(String, String)], parts: &[Bars<'_>]) -> Option<String> {
    let has = |row: &usize| {
        parts
            .iter()
            .any(|part| part.values.get(*row).is_some_and(|value| *value > 0.0))
    };
    let shown: Vec<usize> = (0..rows.len().min(GROUPS_MAX)).filter(has).collect();
    if shown.is_empty() {
        return None;
    }
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}\">\n",
        shown.len() as f64 * ROW,
        escape(description)
    );
    let length = WIDTH - LEFT - RIGHT;
    for (line, row) in shown.iter().enumerate() {
        let top = line as f64 * ROW + (ROW - BAR) / 2.0;
        let text_y = top + BAR / 2.0 + 4.0;
        let (name, remark) = &rows[*row];
        let _ = writeln!(
            svg,
            "<text class=\"name\" x=\"{:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{text_y:.1}\">{}</text>",
            LEFT - 10.0,
            escape_name(name),
            WIDTH - RIGHT + 10.0,
            escape_name(remark)
        );
        let mut from = 0.0;
        for (series, part) in parts.iter().enumerate() {
            let value = part
                .values
                .get(*row)
                .copied()
                .filter(|value| value.is_finite())
                .unwrap_or(0.0);
            let value = value.clamp(0.0, 1.0 - from);
            if value <= 0.0 {
                continue;
            }
            let x = LEFT + from * length;
            let _ = write!(
                svg,
                "<rect class=\"bar\" fill=\"{}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR}\">\
                 <title>{}: {:.1} %</title></rect>",
                colour(series),
                value * length,
                escape_name(part.name),
                100.0 * value
            );
            if value >= LABELLED {
                let _ = write!(
                    svg,
                    "<text class=\"inside\" x=\"{:.1}\" y=\"{text_y:.1}\" text-anchor=\"middle\">{:.0} %</text>",
                    x + value * length / 2.0,
                    100.0 * value
                );
            }
            from += value;
        }
        svg.push('\n');
    }
    let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
    Some(svg + "</svg>\n" + &legend(&names))
}

/// A legend of filled boxes, in the order of the colours.
fn legend(names: &[&str]) -> String {
    let mut html = String::from("<ul class=\"legend\">\n");
    for (series, name) in names.iter().enumerate() {
        let _ = writeln!(
            html,
            "<li><svg class=\"box\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"bar\" fill=\"{}\" \
             width=\"12\" height=\"12\"/></svg>{}</li>",
            colour(series),
            escape_name(name)
        );
    }
    html + "</ul>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_tests::assert_well_formed;

    fn labels(num: usize) -> Vec<String> {
        (0..num).map(|i| format!("<{i}>")).collect()
    }

    #[test]
    fn bars_are_well_formed_bounded_and_skip_what_is_no_number() {
        let values = vec![1.0, f64::NAN, f64::INFINITY, 0.0];
        let bars = [
            Bars { name: "<a>", values },
            Bars {
                name: "b",
                values: vec![0.5; 200],
            },
        ];
        let svg = grouped("<x>", "y", &labels(200), &bars, true).unwrap();
        assert_well_formed(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        // Of the first only 1 and 0 are numbers; of the second 60 are shown; one box for each in the legend.
        assert_eq!(svg.matches("<rect").count(), 2 + GROUPS_MAX + 2);
        assert_eq!(grouped("x", "y", &[], &bars, false), None);
        assert_well_formed(
            &grouped(
                "x",
                "y",
                &labels(1),
                &[Bars {
                    name: "a",
                    values: vec![0.0],
                }],
                false,
            )
            .unwrap(),
        );
    }

    #[test]
    fn divided_bars_leave_out_what_has_no_part_and_never_grow_over_their_length() {
        let rows: Vec<(String, String)> = labels(3).into_iter().map(|name| (name, "9 h".into())).collect();
        let parts = [
            Bars {
                name: "a",
                values: vec![0.75, f64::NAN, 0.9],
            },
            Bars {
                name: "b",
                values: vec![0.25, f64::NAN, 0.9],
            },
        ];
        let svg = divided("parts", &rows, &parts).unwrap();
        assert_well_formed(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("&lt;1&gt;"));
        // 500 px long: 75 % is 375 px; of the last bar's second part only a tenth has room.
        assert!(
            svg.contains("width=\"375.0\"") && svg.contains("width=\"50.0\""),
            "{svg}"
        );
        assert_eq!(
            divided(
                "parts",
                &rows,
                &[Bars {
                    name: "a",
                    values: vec![0.0]
                }]
            ),
            None
        );
    }
}
