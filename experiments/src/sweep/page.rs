//! The report of a sweep: its leaderboard, a panel for each setting, what each setting is worth, all settings side by side, and the same
//! numbers as a table. How sure a difference is, paired ratios say, and not the spread of dots.
//!
//! Configurations are compared with what all of them have: of a sweep with rungs the first one.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::collect::{GatheredUnit, collect};
use super::figures::{last, sign};
use super::leaderboard::Leaderboard;
use super::manifest::Manifest;
use super::policy_unit::STAND_IN;
use super::scalars::show;
use super::settings::{Configuration, Setting, importance, importances, panel, side_by_side};
use super::unit::clear_temporaries;
use crate::error::Error;
use crate::evaluate::metric::{MAIN_METRIC, Metric, show_plain};
use crate::evaluate::table::Table;
use crate::report::{Block, Report};

/// The page below a sweep's folder.
pub(super) const FILE: &str = "results.html";
/// Rows of the table, at most; the CSV has the rest.
const ROWS_MAX: usize = 400;
/// Seconds after which the page of a running sweep loads itself again.
const REFRESH_S: u32 = 10;

/// What to plot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlotConfig {
    /// Dotted key of the metric; without it average JCT, or else the first number found.
    pub metric: Option<String>,
    /// Parameter that has a panel; without it all.
    pub x: Option<String>,
}

/// The report.
///
/// # Errors
/// Where the metric or parameter asked for is not there.
pub fn report(
    manifest: &Manifest,
    units: &[GatheredUnit<'_>],
    config: &PlotConfig,
    leaderboard: Option<&Table>,
) -> Result<Report, Error> {
    let metric = choose_metric(units, config.metric.as_deref())?;
    let report = Report::new(format!("Sweep {}", manifest.name()))
        .note(&format!("{} of {} units", units.len(), manifest.num_units()))
        .section("Leaderboard", leaderboard.cloned().map(Block::from));
    let report = match &metric {
        Some(metric) => compared(
            report,
            &configurations(manifest, units, metric),
            metric,
            config.x.as_deref(),
        )?,
        None => report,
    };
    let base = serde_json::to_string_pretty(manifest.base()).unwrap_or_default();
    Ok(report.section("Configuration that all units share", [Block::Code(base)]))
}

/// Writes the page of what is there by now; one that runs loads itself again. What cannot be read or compared yet, `sweep gather` tells:
/// the page is left as it is.
pub(super) fn rewrite((manifest, out): (&Manifest, &Path), is_running: bool) {
    let written = || -> Result<(), Error> {
        if !is_running {
            // What processes that were killed left of the page.
            clear_temporaries(out)?;
        }
        let units = collect(manifest, out, true)?;
        let leaderboard = Leaderboard::of(manifest, &units, None, None)?;
        let table = leaderboard.as_ref().map(Leaderboard::table);
        let mut page = report(manifest, &units, &PlotConfig::default(), table.as_ref())?;
        page.refresh_s = is_running.then_some(REFRESH_S);
        page.write(&out.join(FILE))
    };
    drop(written());
}

/// What the settings do to a metric.
fn compared(
    report: Report,
    all: &[Configuration<'_>],
    metric: &str,
    x: Option<&str>,
) -> Result<Report, Error> {
    let settings = Setting::all(all);
    if let Some(x) = x.filter(|x| settings.iter().all(|setting| setting.key != *x)) {
        let known: Vec<&str> = settings.iter().map(|setting| setting.key.as_str()).collect();
        return Err(Error::config(
            "x",
            x,
            known.join(", "),
            "Name a parameter that varies.",
        ));
    }
    let shown = settings
        .iter()
        .filter(|setting| x.is_none_or(|x| setting.key == x));
    let panels = shown.filter_map(|setting| panel(setting, &settings, all, metric));
    let worth = importance(&settings, all);
    let note = "Dots: means over seeds. Which differences are sure, the leaderboard says.";
    let panels: Vec<Block> = panels.map(Block::from).collect();
    let note = (!panels.is_empty()).then(|| Block::Note(note.into()));
    let side_by_side = side_by_side(&settings, all, (metric, sign(metric)));
    Ok(report
        .section(&format!("{metric} by setting"), panels.into_iter().chain(note))
        .section(
            "What the settings are worth",
            importances(&worth)
                .into_iter()
                .chain(side_by_side)
                .map(Block::from),
        )
        .section("Numbers", [table(&settings, all, metric).into()]))
}

/// Configurations with the metric over their seeds, in the order of their units.
fn configurations<'a>(
    manifest: &Manifest,
    units: &'a [GatheredUnit<'_>],
    metric: &str,
) -> Vec<Configuration<'a>> {
    let mut found: Vec<Configuration<'a>> = Vec::new();
    let is_first = |unit: &&GatheredUnit<'_>| unit.unit.index < manifest.units_per_rung();
    for unit in units.iter().filter(is_first) {
        let Some(value) = unit.scalars.get(metric).and_then(Value::as_f64) else {
            continue;
        };
        let other = unit
            .scalars
            .get(STAND_IN)
            .map(|other| format!(" ({})", show(other)));
        // Units that set the same stand together.
        match found.last_mut().filter(|own| *own.params == unit.unit.params) {
            Some(own) => own.values.push(value),
            None => found.push(Configuration {
                params: &unit.unit.params,
                stand_in: other.unwrap_or_default(),
                values: vec![value],
            }),
        }
    }
    found
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

/// The settings and the metric of each configuration, the best first.
fn table(settings: &[Setting], all: &[Configuration<'_>], metric: &str) -> Table {
    let name = last(metric);
    let shown =
        |value: f64| Metric::find(name).map_or_else(|| show_plain(value), |metric| metric.show(value));
    let mut order: Vec<&Configuration<'_>> = all.iter().collect();
    order.sort_by(|a, b| (sign(metric) * a.mean()).total_cmp(&(sign(metric) * b.mean())));
    let rows = order.into_iter().take(ROWS_MAX).map(|own| {
        let values = settings.iter().map(|setting| own.label(&setting.key));
        values
            .chain([shown(own.mean()), own.values.len().to_string()])
            .collect()
    });
    let header = settings.iter().map(|setting| setting.short.clone());
    Table {
        header: header.chain([name.to_string(), "seeds".to_string()]).collect(),
        rows: rows.collect(),
        notes: vec![format!(
            "mean of {metric} over seeds; every unit is in results.csv"
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::Grid;
    use crate::sweep::manifest::UnitSpec;
    use crate::sweep::manifest::tests::small;
    use crate::sweep::unit::run_unit;
    use pleach_tests::{assert_well_formed, browser_faults};
    use serde_json::json;
    use std::collections::BTreeMap;

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

    fn page(manifest: &Manifest, units: &[GatheredUnit<'_>], board: Option<&Table>) -> String {
        report(manifest, units, &PlotConfig::default(), board)
            .unwrap()
            .html()
    }

    #[test]
    fn each_setting_has_a_panel_in_which_each_policy_is_a_line() {
        let grid: Grid =
            toml::from_str("name = '<x>'\nseeds = 2\n[grid]\nload = [1, 2]\npolicy = ['<a>', 'b']").unwrap();
        let manifest = grid.plan().unwrap();
        let units = gathered(&manifest);
        let html = page(&manifest, &units, None);
        assert_well_formed(&html);
        assert!(html.contains("policy = &lt;a&gt;") && html.contains("Dots: means over seeds"));
        assert!(html.contains("avg_jct_s by load") && html.contains("avg_jct_s by policy"));
        // load 1 with policy a: units 0 and 1, values 100 and 101.
        let all = configurations(&manifest, &units, "m.avg_jct_s");
        assert_eq!((all.len(), &all[0].values), (4, &vec![100.0, 101.0]));
    }

    #[test]
    fn a_policy_in_whose_place_another_decides_is_labelled_so() {
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
        let html = page(&manifest, &units, None);
        assert!(html.contains("policy = srtf (as sjf: no preemption)"), "{html}");
    }

    #[test]
    fn a_sweep_without_numbers_on_an_axis_has_its_table_and_unknown_names_are_refused() {
        let grid: Grid = toml::from_str("name = 'x'\n[grid]\npolicy = ['a', 'b']").unwrap();
        let manifest = grid.plan().unwrap();
        let units = gathered(&manifest);
        let html = page(&manifest, &units, None);
        assert_well_formed(&html);
        assert!(html.contains("<td class=\"text\">a</td>"), "{html}");
        let refused = |metric: Option<&str>, x: Option<&str>| {
            let config = PlotConfig {
                metric: metric.map(str::to_string),
                x: x.map(str::to_string),
            };
            report(&manifest, &units, &config, None).unwrap_err().to_string()
        };
        assert!(refused(Some("speed"), None).contains("allowed is m.avg_jct_s"));
        assert!(refused(None, Some("load")).contains("x = load: allowed is policy"));
    }

    #[test]
    fn the_page_of_a_sweep_that_runs_loads_itself_again_until_it_has_ended() {
        let (manifest, out) = (small(), tempfile::tempdir().unwrap());
        rewrite((&manifest, out.path()), true);
        assert!(!out.path().join(FILE).exists(), "nothing is there to be shown");
        let work = |spec: &UnitSpec| Ok(json!({"metrics": {"avg_jct_s": spec.config["load"]}}));
        for index in [0, 2, 4] {
            run_unit(&manifest.unit(index).unwrap(), out.path(), &work).unwrap();
        }
        let read = || std::fs::read_to_string(out.path().join(FILE)).unwrap();
        rewrite((&manifest, out.path()), true);
        assert!(read().contains("http-equiv=\"refresh\" content=\"10\"") && read().contains("3 of 6 units"));
        rewrite((&manifest, out.path()), false);
        assert!(!read().contains("http-equiv=\"refresh\""));
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
        let html = page(&manifest, &units, Some(&board.table()));
        let folder = tempfile::tempdir().unwrap();
        if let Some(faults) = browser_faults(folder.path(), &[("sweep", &html)]) {
            assert_eq!(faults, [] as [String; 0]);
        }
    }
}
