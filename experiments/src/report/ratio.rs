//! How each policy stands against the reference: a dot for the paired ratio and a bar for its interval.

use std::fmt::Write as _;

use crate::evaluate::metric::Better;
use crate::evaluate::results::Results;
use crate::evaluate::stats::Ratio;
use crate::evaluate::table::show_ratio;
use crate::plot::axis::Axis;
use crate::plot::frame::{SERIES_MAX, colour};
use crate::plot::text::{escape, escape_name};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 150.0;
const ROW: f64 = 24.0;
const BOTTOM: f64 = 44.0;

/// The plot; none without a reference or without another policy.
#[must_use]
pub fn render(results: &Results) -> Option<String> {
    let reference = results.reference()?;
    let rows: Vec<(usize, &str, Ratio)> = results
        .policies()
        .take(SERIES_MAX)
        .enumerate()
        .filter(|(_, (name, _))| *name != reference)
        .filter_map(|(series, (name, summary))| {
            Some((series, name, summary.ratio_vs_reference.as_ref()?.ratio))
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
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
    let px = |value: f64| LEFT + axis.place(value) * (WIDTH - LEFT - RIGHT);
    let bottom = rows.len() as f64 * ROW;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"Ratio of {what} to {} with 95 % \
         intervals\">\n",
        bottom + BOTTOM,
        escape(reference)
    );
    for (value, label) in &axis.ticks {
        let class = if *value == 1.0 { "axis" } else { "grid" };
        let _ = writeln!(
            svg,
            "<path class=\"{class}\" d=\"M{x:.1} 0V{bottom:.1}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            escape(label),
            x = px(*value)
        );
    }
    for (row, (series, name, ratio)) in rows.iter().enumerate() {
        let y = (row as f64 + 0.5) * ROW;
        let colour = colour(*series);
        let interval = ratio.low.zip(ratio.high);
        if let Some((low, high)) = interval {
            let _ = write!(
                svg,
                "<path class=\"line\" stroke=\"{colour}\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                px(low),
                px(high)
            );
        }
        let range = interval.map(|(low, high)| format!(" [{}, {}]", show_ratio(low), show_ratio(high)));
        let _ = writeln!(
            svg,
            "<circle r=\"4.5\" fill=\"{colour}\" cx=\"{:.1}\" cy=\"{y:.1}\"/>\
             <text class=\"name\" x=\"{:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{text_y:.1}\">{}{}</text>",
            px(ratio.mean),
            LEFT - 10.0,
            escape_name(name),
            WIDTH - RIGHT + 10.0,
            show_ratio(ratio.mean),
            range.unwrap_or_default(),
            text_y = y + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        bottom + BOTTOM - 8.0,
        escape(&title)
    );
    Some(svg)
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
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(svg.contains("&lt;srtf&gt;"));
    }

    #[test]
    fn without_a_reference_there_is_no_plot() {
        let results = Results::new("evaluate", vec![run("fifo", "w", 0, 1.0)], None).unwrap();
        assert!(render(&results).is_none());
    }
}
