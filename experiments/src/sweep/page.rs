//! The page of a sweep: its leaderboard; one metric over one parameter, a line for each combination of the others, means over seeds;
//! and the same numbers as a table. How sure a difference is, paired ratios say, and not the spread of a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::collect::GatheredUnit;
use super::manifest::Manifest;
use super::policy_unit::STAND_IN;
use super::scalars::show;
use crate::error::Error;
use crate::evaluate::metric::{MAIN_METRIC, Metric, show_plain};
use crate::evaluate::stats::mean;
use crate::evaluate::table::Table;
use crate::plot::axis::Axis;
use crate::plot::frame::{Frame, SERIES_MAX, at_both_widths, colour, legend};
use crate::plot::look::series_of;
use crate::plot::series::thin;
use crate::plot::text::escape;
use crate::report::page::{html_table, page as html_page, preformatted, section};

/// Rows of the table, at most; the CSV has the rest.
const ROWS_MAX: usize = 400;
/// Points of one line, at most.
const POINTS_MAX: usize = 200;

/// What to plot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlotConfig {
    /// Dotted key of the metric; without it average JCT, or else the first number found.
    pub metric: Option<String>,
    /// Parameter on the horizontal axis; without it the first one with several numbers.
    pub x: Option<String>,
}

/// Values of the metric over seeds, by (line, place on the axis).
type Cells = BTreeMap<String, Vec<(f64, Vec<f64>)>>;

/// The page.
///
/// # Errors
/// [`Error::Problem`] where the metric or parameter asked for is not there.
pub fn page(
    manifest: &Manifest,
    units: &[GatheredUnit<'_>],
    config: &PlotConfig,
    leaderboard: Option<&Table>,
) -> Result<String, Error> {
    let title = format!("Sweep {}", manifest.name());
    let metric = choose_metric(units, config.metric.as_deref())?;
    let x = choose_x(units, config.x.as_deref())?;
    let mut body = format!("<h1>{}</h1>\n", escape(&title));
    let _ = writeln!(
        body,
        "<p class=\"note\">Pleach {} · {} of {} units</p>",
        env!("CARGO_PKG_VERSION"),
        units.len(),
        manifest.num_units()
    );
    section(&mut body, "Leaderboard", leaderboard.map(html_table));
    if let Some(metric) = metric {
        let cells = group(units, &metric, x.as_deref());
        let plotted = x.as_deref().map(|x| draw(&cells, &metric, x));
        section(&mut body, &metric, plotted);
        section(
            &mut body,
            "Numbers",
            Some(html_table(&table(&cells, &metric, x.as_deref()))),
        );
    }
    let base = serde_json::to_string_pretty(manifest.base()).unwrap_or_default();
    section(
        &mut body,
        "Configuration that all units share",
        Some(preformatted(&base)),
    );
    Ok(html_page(&title, &body))
}

fn choose_metric(units: &[GatheredUnit<'_>], wanted: Option<&str>) -> Result<Option<String>, Error> {
    let numbers: BTreeSet<&str> = units
        .iter()
        .flat_map(|unit| {
            unit.scalars
                .iter()
                .filter(|(_, value)| value.is_number())
                .map(|(key, _)| key.as_str())
        })
        .collect();
    let ends_with = |name: &str| {
        let dotted = format!(".{name}");
        numbers
            .iter()
            .find(|key| **key == name || key.ends_with(&dotted))
            .map(|key| (*key).to_string())
    };
    match wanted {
        None => Ok(ends_with(MAIN_METRIC).or_else(|| numbers.first().map(|key| (*key).to_string()))),
        Some(name) => ends_with(name).map(Some).ok_or_else(|| {
            let allowed = numbers.iter().take(30).copied().collect::<Vec<_>>().join(", ");
            Error::config("metric", name, allowed, "Name a number of the results.")
        }),
    }
}

fn choose_x(units: &[GatheredUnit<'_>], wanted: Option<&str>) -> Result<Option<String>, Error> {
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut texts: BTreeSet<&str> = BTreeSet::new();
    for (key, value) in units.iter().flat_map(|unit| &unit.unit.params) {
        values.entry(key).or_default().insert(value.to_string());
        if !value.is_number() {
            texts.insert(key);
        }
    }
    let mut numeric = values.iter().filter(|(key, _)| !texts.contains(*key));
    match wanted {
        None => Ok(numeric
            .find(|(_, values)| values.len() > 1)
            .map(|(key, _)| (*key).to_string())),
        Some(name) if values.contains_key(name) && !texts.contains(name) => Ok(Some(name.to_string())),
        Some(name) => {
            let allowed = numeric.map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
            Err(Error::config(
                "x",
                name,
                allowed,
                "Name a parameter whose values are numbers.",
            ))
        }
    }
}

fn group(units: &[GatheredUnit<'_>], metric: &str, x: Option<&str>) -> Cells {
    let mut cells = Cells::new();
    for unit in units {
        let Some(value) = unit.scalars.get(metric).and_then(Value::as_f64) else {
            continue;
        };
        let params = &unit.unit.params;
        let place = x
            .and_then(|x| params.get(x))
            .and_then(Value::as_f64)
            .unwrap_or(0.0);
        let others = params.iter().filter(|(key, _)| Some(key.as_str()) != x);
        let name: Vec<String> = others
            .map(|(key, value)| format!("{key} = {}", show(value)))
            .collect();
        let mut name = name.join(", ");
        if let Some(other) = unit.scalars.get(STAND_IN) {
            name = format!("{name} ({})", show(other)).trim_start().to_string();
        }
        let line = cells.entry(name).or_default();
        match line.iter_mut().find(|(other, _)| *other == place) {
            Some((_, values)) => values.push(value),
            None => line.push((place, vec![value])),
        }
    }
    for line in cells.values_mut() {
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    cells
}

fn range(values: &[f64]) -> (f64, f64) {
    (
        values.iter().copied().fold(f64::INFINITY, f64::min),
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}

fn draw(cells: &Cells, metric: &str, x: &str) -> String {
    let all = || cells.values().flatten();
    let (low_x, high_x) = range(&all().map(|cell| cell.0).collect::<Vec<_>>());
    let (low, high) = range(&all().map(|cell| mean(&cell.1)).collect::<Vec<_>>());
    // From zero unless that would hide the differences.
    let low = if low > 0.0 && low < 0.5 * high { 0.0 } else { low };
    let looks = series_of(cells.keys().take(SERIES_MAX).map(|name| policy_of(name)));
    let drawn = at_both_widths(|width| {
        Some(picture(
            cells,
            &looks,
            ((low_x, high_x), (low, high)),
            (metric, x, width),
        ))
    });
    let names: Vec<(usize, &str)> = looks
        .iter()
        .copied()
        .zip(cells.keys().map(String::as_str))
        .collect();
    let mut html = drawn.unwrap_or_default();
    if names.iter().any(|(_, name)| !name.is_empty()) {
        html += &legend(&names);
    }
    let left_out = cells.len().saturating_sub(SERIES_MAX);
    if left_out > 0 {
        let _ = writeln!(
            html,
            "<p class=\"note\">{left_out} more combinations are in the CSV.</p>"
        );
    }
    html + "<p class=\"note\">Dots: means over seeds. Which differences are sure, the leaderboard says.</p>\n"
}

/// A line for each combination.
fn picture(
    cells: &Cells,
    looks: &[usize],
    ((low_x, high_x), (low, high)): ((f64, f64), (f64, f64)),
    (metric, x, width): (&str, &str, f64),
) -> String {
    let mut frame = Frame::new(
        Axis::linear(x, low_x, high_x),
        Axis::linear(metric, low, high),
        360.0,
    )
    .wide(width);
    frame.left = 84.0;
    for (series, (name, line)) in looks.iter().copied().zip(cells) {
        let mut svg = String::new();
        for (place, values) in thin(&line.iter().collect::<Vec<_>>(), POINTS_MAX) {
            let _ = writeln!(
                svg,
                "<circle r=\"3.5\" fill=\"{colour}\" cx=\"{px:.1}\" cy=\"{:.1}\"/>",
                frame.py(mean(values)),
                colour = colour(series),
                px = frame.px(*place)
            );
        }
        frame.add(&svg);
        let points: Vec<(f64, f64)> = line
            .iter()
            .map(|(place, values)| (*place, mean(values)))
            .collect();
        frame.line(series, name, &thin(&points, POINTS_MAX));
    }
    frame.render(&format!("{metric} over {x}"))
}

/// The policy where a combination is no more than that: its colour is that of the policy on every page.
fn policy_of(name: &str) -> &str {
    let name = name.strip_prefix("policy = ").unwrap_or(name);
    name.split(" (as ").next().unwrap_or(name)
}

fn table(cells: &Cells, metric: &str, x: Option<&str>) -> Table {
    let last = metric.rsplit('.').next().unwrap_or(metric);
    let show = |value: f64| Metric::find(last).map_or_else(|| show_plain(value), |metric| metric.show(value));
    let header = ["combination", x.unwrap_or("-"), "mean", "seeds"]
        .map(str::to_string)
        .to_vec();
    let all = cells
        .iter()
        .flat_map(|(name, line)| line.iter().map(move |cell| (name, cell)));
    let rows = all
        .take(ROWS_MAX)
        .map(|(name, (place, values))| {
            let name = if name.is_empty() { "all" } else { name.as_str() };
            let place = if x.is_some() {
                place.to_string()
            } else {
                "-".to_string()
            };
            let row = [
                name.to_string(),
                place,
                show(mean(values)),
                values.len().to_string(),
            ];
            row.to_vec()
        })
        .collect();
    Table {
        header,
        rows,
        notes: vec![format!("{metric}; every unit is in results.csv")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::Grid;
    use pleach_tests::{assert_well_formed, browser_faults};
    use serde_json::json;

    fn gathered(manifest: &Manifest) -> Vec<GatheredUnit<'_>> {
        let scalars =
            |index: usize| BTreeMap::from([("m.avg_jct_s".to_string(), json!(100.0 + index as f64))]);
        manifest
            .units()
            .iter()
            .map(|unit| GatheredUnit {
                unit,
                value: Value::Null,
                scalars: scalars(unit.index),
            })
            .collect()
    }

    #[test]
    fn a_line_for_each_policy_over_the_parameter_with_numbers() {
        let grid: Grid =
            toml::from_str("name = '<x>'\nseeds = 2\n[grid]\nload = [1, 2]\npolicy = ['<a>', 'b']").unwrap();
        let manifest = grid.plan().unwrap();
        let units = gathered(&manifest);
        let html = page(&manifest, &units, &PlotConfig::default(), None).unwrap();
        assert_well_formed(&html);
        assert!(html.contains("policy = &lt;a&gt;") && html.contains("Dots: means over seeds"));
        // load 1 with policy a: units 0 and 1, values 100 and 101.
        let cells = group(&units, "m.avg_jct_s", Some("load"));
        assert_eq!(cells["policy = <a>"][0], (1.0, vec![100.0, 101.0]));
    }

    #[test]
    fn who_decides_as_another_is_labelled_so() {
        let grid: Grid =
            toml::from_str("name = 'x'\n[grid]\nload = [1, 2]\npolicy = ['sjf', 'srtf']").unwrap();
        let manifest = grid.plan().unwrap();
        let mut units = gathered(&manifest);
        for unit in &mut units {
            if unit.unit.params["policy"] == "srtf" {
                unit.scalars
                    .insert(STAND_IN.into(), json!("as sjf: no preemption"));
            }
        }
        let html = page(&manifest, &units, &PlotConfig::default(), None).unwrap();
        assert!(html.contains("policy = srtf (as sjf: no preemption)"), "{html}");
        let cells = group(&units, "m.avg_jct_s", Some("load"));
        let names: Vec<&str> = cells.keys().map(String::as_str).collect();
        assert_eq!(names, ["policy = sjf", "policy = srtf (as sjf: no preemption)"]);
    }

    #[test]
    fn a_sweep_without_numbers_on_an_axis_has_its_table_and_unknown_names_are_refused() {
        let grid: Grid = toml::from_str("name = 'x'\n[grid]\npolicy = ['a', 'b']").unwrap();
        let manifest = grid.plan().unwrap();
        let units = gathered(&manifest);
        let html = page(&manifest, &units, &PlotConfig::default(), None).unwrap();
        assert_well_formed(&html);
        assert!(html.contains("policy = a") && !html.contains("Dots"));
        let refused = |metric: Option<&str>, x: Option<&str>| {
            let config = PlotConfig {
                metric: metric.map(str::to_string),
                x: x.map(str::to_string),
            };
            page(&manifest, &units, &config, None).unwrap_err().to_string()
        };
        assert!(refused(Some("speed"), None).contains("allowed is m.avg_jct_s"));
        assert!(refused(None, Some("policy")).contains("numbers"));
    }

    #[test]
    fn in_a_browser_nothing_is_cut_or_covered_on_a_phone_or_a_screen() {
        let grid: Grid = toml::from_str(
            "name = 'load'\nseeds = 3\n[grid]\nload = [0.6, 0.8, 1.0, 1.2]\npolicy = ['fifo', 'sjf', 'best-type-delay']",
        )
        .unwrap();
        let manifest = grid.plan().unwrap();
        let mut units = gathered(&manifest);
        for unit in &mut units {
            unit.value = json!({"metrics": {"avg_jct_s": 100.0 + unit.unit.index as f64}});
        }
        let board = crate::sweep::leaderboard::Leaderboard::of(&manifest, &units, None, None)
            .unwrap()
            .unwrap();
        let html = page(&manifest, &units, &PlotConfig::default(), Some(&board.table())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        if let Some(faults) = browser_faults(folder.path(), &[("sweep", &html)]) {
            assert_eq!(faults, [] as [String; 0]);
        }
    }
}
