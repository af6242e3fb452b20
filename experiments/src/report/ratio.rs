//! How each policy stands against the reference: a dot for the paired ratio and a bar for its interval.

use std::fmt::Write as _;

use crate::evaluate::metric::Better;
use crate::evaluate::results::Results;
use crate::evaluate::stats::Ratio;
use crate::evaluate::table::show_ratio;
use crate::plot::axis::Axis;
use crate::plot::frame::{LINE, WIDTH, at_both_widths, colour};
use crate::plot::text::{escape, escape_short, width_of, wrapped};
use crate::report::looks;

const BOTTOM: f64 = 44.0;

/// Where things are in a plot of a width: beside each other on a screen, the texts above the bar on a phone.
struct Layout {
    width: f64,
    /// Where the axis begins and ends.
    axis: (f64, f64),
    row: f64,
    /// How far the texts are above the bar.
    lift: f64,
}

impl Layout {
    fn of(width: f64) -> Layout {
        match width < WIDTH {
            true => Layout {
                width,
                axis: (16.0, width - 16.0),
                row: 40.0,
                lift: 12.0,
            },
            false => Layout {
                width,
                axis: (216.0, width - 150.0),
                row: 24.0,
                lift: -4.0,
            },
        }
    }
}

/// The plot; none without a reference or without another policy.
#[must_use]
pub fn render(results: &Results) -> Option<String> {
    let reference = results.reference()?;
    let ratio_of = |name: &str| {
        let mut policies = results.policies();
        let (_, summary) = policies.find(|(own, _)| *own == name)?;
        Some(summary.ratio_vs_reference.as_ref()?.ratio)
    };
    let rows: Vec<(usize, String, Ratio)> = looks(results)
        .into_iter()
        .filter(|(_, name)| *name != reference)
        .filter_map(|(series, name)| Some((series, results.label(name), ratio_of(name)?)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    at_both_widths(|width| Some(draw(results, reference, &rows, &Layout::of(width))))
}

fn draw(results: &Results, reference: &str, rows: &[(usize, String, Ratio)], layout: &Layout) -> String {
    let low = rows
        .iter()
        .map(|(_, _, ratio)| ratio.low.unwrap_or(ratio.mean))
        .fold(1.0, f64::min);
    let high = rows
        .iter()
        .map(|(_, _, ratio)| ratio.high.unwrap_or(ratio.mean))
        .fold(1.0, f64::max);
    let metric = results.metric();
    let side = match metric.better {
        Better::Higher => "right",
        Better::Lower | Better::Neither => "left",
    };
    let what = metric.label;
    let title = format!("{what} / {what} of {reference} (log scale; {side} of 1 is better)");
    let axis = Axis::log_ratio(&title, low * 0.97, high * 1.03);
    let (left, right) = layout.axis;
    let px = |value: f64| left + axis.place(value) * (right - left);
    let bottom = rows.len() as f64 * layout.row;
    let titles = wrapped(&title, layout.width - 8.0);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {:.0}\" role=\"img\" aria-label=\"Ratio of {what} to {} with 95 % \
         intervals\">\n",
        layout.width,
        bottom + BOTTOM + LINE * (titles.len() - 1) as f64,
        escape(reference)
    );
    let mut free_from = f64::NEG_INFINITY;
    for (value, label) in &axis.ticks {
        let class = if *value == 1.0 { "axis" } else { "grid" };
        let (x, half) = (px(*value), width_of(label) / 2.0);
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{x:.1} 0V{bottom:.1}\"/>");
        if x - half >= free_from.max(0.0) && x + half <= layout.width {
            free_from = x + half + 8.0;
            let _ = writeln!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                escape(label)
            );
        }
    }
    for (row, one) in rows.iter().enumerate() {
        svg.push_str(&bar(one, row, layout, &px));
    }
    for (line, text) in titles.iter().enumerate() {
        let half = width_of(text) / 2.0;
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            ((left + right) / 2.0).min(layout.width - half).max(half),
            bottom + 36.0 + LINE * line as f64,
            escape(text)
        );
    }
    svg + "</svg>\n"
}

/// One row: name, interval, mean, and the numbers.
fn bar(
    (series, name, ratio): &(usize, String, Ratio),
    row: usize,
    layout: &Layout,
    px: &dyn Fn(f64) -> f64,
) -> String {
    let y = (row as f64 + 0.5) * layout.row + layout.lift.max(0.0) / 2.0;
    let colour = colour(*series);
    let interval = ratio.low.zip(ratio.high);
    let mut svg = String::new();
    if let Some((low, high)) = interval {
        let _ = write!(
            svg,
            "<path class=\"line\" stroke=\"{colour}\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
            px(low),
            px(high)
        );
    }
    let is_narrow = layout.lift > 0.0;
    let (name_x, name_anchor) = match is_narrow {
        true => (4.0, "start"),
        false => (layout.axis.0 - 10.0, "end"),
    };
    let (numbers_x, numbers_anchor) = match is_narrow {
        true => (layout.width - 4.0, "end"),
        false => (layout.axis.1 + 10.0, "start"),
    };
    let range = interval.map(|(low, high)| format!(" [{}, {}]", show_ratio(low), show_ratio(high)));
    let _ = writeln!(
        svg,
        "<circle r=\"4.5\" fill=\"{colour}\" cx=\"{:.1}\" cy=\"{y:.1}\"/>\
         <text class=\"name\" x=\"{name_x:.1}\" y=\"{text_y:.1}\" text-anchor=\"{name_anchor}\">{}</text>\
         <text class=\"tick\" x=\"{numbers_x:.1}\" y=\"{text_y:.1}\" text-anchor=\"{numbers_anchor}\">{}{}</text>",
        px(ratio.mean),
        escape_short(name),
        show_ratio(ratio.mean),
        range.unwrap_or_default(),
        text_y = y - layout.lift
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::results::tests::run;
    use pleach_tests::assert_well_formed;

    #[test]
    fn every_policy_but_the_reference_has_a_row() {
        let mut runs = vec![];
        for seed in 0..3 {
            runs.push(run("fifo", "w", seed, 100.0));
            runs.push(run("<srtf>", "w", seed, 50.0 + seed as f64));
        }
        let results = Results::new("evaluate", runs, Some("fifo")).unwrap();
        let svg = render(&results).unwrap();
        assert_well_formed(&svg);
        // Once for a screen, once for a phone.
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("&lt;srtf&gt;"));
    }

    #[test]
    fn without_a_reference_there_is_no_plot() {
        let results = Results::new("evaluate", vec![run("fifo", "w", 0, 1.0)], None).unwrap();
        assert!(render(&results).is_none());
    }
}
