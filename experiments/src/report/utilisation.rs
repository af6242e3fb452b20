//! How busy the cluster was over time: one strip for each policy below the other, so that no line hides another.

use std::fmt::Write as _;

use crate::evaluate::results::{PolicyRun, Results};
use crate::plot::axis::Axis;
use crate::plot::frame::{WIDTH, at_both_widths, colour};
use crate::plot::series::averaged;
use crate::plot::text::{escape, escape_name, escape_short};
use crate::report::looks;

/// Points of one strip, at most.
pub(crate) const UTILISATION_POINTS_MAX: usize = 600;

const RIGHT: f64 = 16.0;
const STRIP: f64 = 40.0;
const BOTTOM: f64 = 44.0;

/// Where things are in a plot of a width: names beside the strips on a screen, above them on a phone.
#[derive(Clone, Copy)]
struct Layout {
    width: f64,
    left: f64,
    /// Room above each strip.
    gap: f64,
}

impl Layout {
    fn of(width: f64) -> Layout {
        let (left, gap) = if width < WIDTH { (8.0, 22.0) } else { (216.0, 10.0) };
        Layout { width, left, gap }
    }
}

/// The plot of one workload and seed, the first of the common pairs; none where no run kept its utilisation.
#[must_use]
pub fn render(results: &Results) -> Option<String> {
    let (workload, seed) = first_pair(results)?;
    let of = |name: &str| {
        let mut runs = results.runs().iter();
        runs.find(|run| run.policy == name && run.workload == workload && run.seed == seed)
    };
    let strips: Vec<(usize, String, &PolicyRun)> = looks(results)
        .into_iter()
        .filter_map(|(series, name)| {
            Some((
                series,
                results.label(name),
                of(name).filter(|run| !run.utilisation.is_empty())?,
            ))
        })
        .collect();
    if strips.is_empty() {
        return None;
    }
    let note = format!(
        "<p class=\"note\">Workload {}, seed {seed}. A full strip is all GPUs busy (100 %).</p>\n",
        escape_name(workload)
    );
    Some(at_both_widths(|width| Some(draw(&strips, Layout::of(width))))? + &note)
}

fn draw(strips: &[(usize, String, &PolicyRun)], layout: Layout) -> String {
    let end_s = |run: &PolicyRun| run.utilisation.last().map_or(0.0, |point| point.0);
    let high_s = strips.iter().map(|(_, _, run)| end_s(run)).fold(0.0, f64::max);
    let axis = Axis::time("simulated time", high_s);
    let px = |time_s: f64| layout.left + axis.place(time_s) * (layout.width - layout.left - RIGHT);
    let bottom = strips.len() as f64 * (STRIP + layout.gap);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {:.0}\" role=\"img\" aria-label=\"Part of all GPUs that are busy over time, \
         one strip for each policy\">\n",
        layout.width,
        bottom + BOTTOM
    );
    for (value, label) in &axis.ticks {
        let (x, y) = (px(*value), bottom + 16.0);
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{x:.1} 0V{bottom:.1}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\" \
             text-anchor=\"middle\">{}</text>",
            escape(label)
        );
    }
    for (row, (series, label, run)) in strips.iter().enumerate() {
        let floor = (row + 1) as f64 * (STRIP + layout.gap);
        let points = averaged(&run.utilisation, UTILISATION_POINTS_MAX / 2);
        svg += &strip(*series, label, &points, (floor, layout), px);
    }
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n</svg>",
        (layout.left + layout.width - RIGHT) / 2.0,
        bottom + BOTTOM - 8.0,
        escape(&axis.title)
    );
    svg
}

/// The first (workload, seed) that every policy finished.
fn first_pair(results: &Results) -> Option<(&str, u64)> {
    let num_policies = results.policies().count();
    results.workloads().iter().find_map(|workload| {
        let has = |seed: u64| {
            results
                .runs()
                .iter()
                .filter(|run| &run.workload == workload && run.seed == seed)
                .count()
                == num_policies
        };
        Some((
            workload.as_str(),
            results.seeds().iter().copied().find(|&seed| has(seed))?,
        ))
    })
}

/// One filled strip with its name on the left. Each (time, part) holds until the next time.
fn strip(
    series: usize,
    name: &str,
    points: &[(f64, f64)],
    (floor, layout): (f64, Layout),
    px: impl Fn(f64) -> f64,
) -> String {
    let py = |part: f64| floor - part.clamp(0.0, 1.0) * STRIP;
    let mut path = String::new();
    for (position, &(time_s, part)) in points.iter().enumerate() {
        let (x, y) = (px(time_s), py(part));
        let _ = match position {
            0 => write!(path, "M{x:.1} {floor:.1}V{y:.1}"),
            _ => write!(path, "H{x:.1}V{y:.1}"),
        };
    }
    let _ = write!(path, "V{floor:.1}Z");
    let colour = colour(series);
    let (left, right) = (layout.left, layout.width - RIGHT);
    let (x, y, anchor) = match layout.width < WIDTH {
        true => (left, floor - STRIP - 6.0, "start"),
        false => (left - 8.0, floor - STRIP / 2.0 + 4.0, "end"),
    };
    format!(
        "<path class=\"full\" d=\"M{left} {:.1}H{right:.1}\"/><path class=\"area\" fill=\"{colour}\" \
         d=\"{path}\"><title>{name}</title></path><path class=\"axis\" d=\"M{left} {floor:.1}H{right:.1}\"/>\
         <text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
        floor - STRIP,
        escape_short(name),
        name = escape_name(name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::results::tests::run;
    use pleach_tests::assert_well_formed;

    #[test]
    fn strips_are_well_formed_and_named() {
        let results = Results::new(
            "evaluate",
            vec![run("fifo", "w", 0, 9.0), run("<tree>", "w", 0, 8.0)],
            None,
        )
        .unwrap();
        let svg = render(&results).unwrap();
        assert_well_formed(&svg);
        assert!(svg.contains("&lt;tree&gt;") && svg.contains("simulated time"));
    }
}
