//! Merges the results of all units into one CSV, one JSON, one page and a leaderboard, in the order of units.
//!
//! The output depends on the manifest and the results alone, so it is the same byte by byte in whatever order, on whatever
//! machines the units ran. Refused: a sweep with units missing, unless a partial one is asked for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::collect::{GatheredUnit, collect};
use super::leaderboard::Leaderboard;
use super::manifest::Manifest;
use super::mlflow;
use super::page::{self, PlotConfig};
use super::scalars::show;
use super::unit::clear_temporaries;
use crate::error::Error;
use crate::evaluate::results::csv_text;
use crate::evaluate::table::Table;
use crate::run_folder::atomic_file;

/// Columns of the CSV, at most.
const COLUMNS_MAX: usize = 1000;

/// How to gather.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatherConfig {
    /// Go on with units missing.
    pub partial: bool,
    /// What to plot.
    pub plot: PlotConfig,
    /// The configuration that the leaderboard measures the others against; without it the best.
    pub reference: Option<String>,
    /// A store of MLflow to write the units into.
    pub mlflow: Option<PathBuf>,
}

/// What was gathered.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// The files, in the order of their writing.
    pub paths: Vec<PathBuf>,
    /// The configurations, the best first, where there is something to compare.
    pub leaderboard: Option<Table>,
}

/// Writes `results.csv`, `results.json`, `results.html` and, where units can be compared, `leaderboard.csv` below `out`.
///
/// # Errors
/// As `collect`, and [`Error::Problem`], [`Error::Problem`] where the plot asks for what is not there.
pub fn gather(manifest: &Manifest, out: &Path, config: &GatherConfig) -> Result<Gathered, Error> {
    clear_temporaries(out)?;
    let units = collect(manifest, out, config.partial)?;
    let csv = to_csv(&units)?;
    let json = to_json(manifest, &units);
    let metric = config.plot.metric.as_deref();
    let leaderboard = Leaderboard::of(manifest, &units, metric, config.reference.as_deref())?;
    let table = leaderboard.as_ref().map(Leaderboard::table);
    let page = page::report(manifest, &units, &config.plot, table.as_ref())?;
    let paths = ["results.csv", "results.json", page::FILE].map(|name| out.join(name));
    atomic_file::write(&paths[0], csv.as_bytes())?;
    atomic_file::write_json(&paths[1], &json)?;
    page.write(&paths[2])?;
    let mut paths = paths.to_vec();
    if let Some(leaderboard) = &leaderboard {
        let path = out.join("leaderboard.csv");
        atomic_file::write(&path, leaderboard.to_csv()?.as_bytes())?;
        paths.push(path);
    }
    if let Some(store) = &config.mlflow {
        mlflow::write(store, manifest, out, &units)?;
        paths.push(store.clone());
    }
    Ok(Gathered {
        paths,
        leaderboard: table,
    })
}

/// One row for each unit: index, replicate, seed, its parameters as `param.KEY`, and what it found.
fn to_csv(units: &[GatheredUnit<'_>]) -> Result<String, Error> {
    let params: BTreeSet<&str> = units
        .iter()
        .flat_map(|unit| unit.unit.params.keys().map(String::as_str))
        .collect();
    let keys: BTreeSet<&str> = units
        .iter()
        .flat_map(|unit| unit.scalars.keys().map(String::as_str))
        .collect();
    if params.len() + keys.len() > COLUMNS_MAX {
        let found = params.len() + keys.len();
        return Err(Error::Failed(format!(
            "the results have {found} different keys; {COLUMNS_MAX} at most"
        )));
    }
    let header: Vec<String> = ["index", "replicate", "seed"]
        .map(str::to_string)
        .into_iter()
        .chain(params.iter().map(|key| format!("param.{key}")))
        .chain(keys.iter().map(|key| (*key).to_string()))
        .collect();
    let rows = units.iter().map(|unit| {
        let entry = unit.unit;
        let mut row = vec![
            entry.index.to_string(),
            entry.replicate.to_string(),
            entry.seed.to_string(),
        ];
        row.extend(
            params
                .iter()
                .map(|&key| entry.params.get(key).map(show).unwrap_or_default()),
        );
        row.extend(
            keys.iter()
                .map(|&key| unit.scalars.get(key).map(show).unwrap_or_default()),
        );
        row
    });
    csv_text(header.iter().map(String::as_str), rows)
}

fn to_json(manifest: &Manifest, units: &[GatheredUnit<'_>]) -> Value {
    let units: Vec<Value> = units
        .iter()
        .map(|unit| {
            json!({
                "index": unit.unit.index, "params": unit.unit.params, "replicate": unit.unit.replicate,
                "seed": unit.unit.seed, "hash": unit.unit.hash, "value": unit.value,
            })
        })
        .collect();
    json!({
        "schema": 1, "command": "sweep gather", "name": manifest.name(), "base": manifest.base(),
        "num_units": manifest.num_units(), "units": units,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::manifest::UnitSpec;
    use crate::sweep::manifest::tests::small;
    use crate::sweep::unit::{RESULT_FILE, run_unit, unit_folder};
    use pleach_tests::assert_well_formed;
    use std::fs;

    fn work(spec: &UnitSpec) -> Result<Value, crate::sweep::UnitError> {
        let load = spec.config["load"].as_f64().unwrap_or(0.0);
        Ok(
            json!({"policy": "<fifo>", "metrics": {"avg_jct_s": 100.0 * load + spec.replicate as f64}, "jct_s": [1.0]}),
        )
    }

    fn run_in_order(out: &Path, order: &[usize]) {
        for &index in order {
            run_unit(&small().unit(index).unwrap(), out, &work).unwrap();
        }
    }

    #[test]
    fn what_is_gathered_does_not_depend_on_the_order_in_which_units_ran() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        run_in_order(one.path(), &[0, 1, 2, 3, 4, 5]);
        run_in_order(two.path(), &[5, 2, 4, 0, 3, 1]);
        let first = gather(&small(), one.path(), &GatherConfig::default()).unwrap();
        let second = gather(&small(), two.path(), &GatherConfig::default()).unwrap();
        for (a, b) in first.paths.iter().zip(&second.paths) {
            assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap(), "{}", a.display());
        }
        assert_well_formed(&fs::read_to_string(&first.paths[2]).unwrap());
    }

    #[test]
    fn the_csv_has_one_row_for_each_unit_with_parameters_and_scalars() {
        let out = tempfile::tempdir().unwrap();
        run_in_order(out.path(), &[0, 1, 2, 3, 4, 5]);
        gather(&small(), out.path(), &GatherConfig::default()).unwrap();
        let text = fs::read_to_string(out.path().join("results.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "index,replicate,seed,param.load,metrics.avg_jct_s,policy"
        );
        assert_eq!(lines.len(), 7);
        assert!(
            lines[4].starts_with("3,1,") && lines[4].ends_with(",2,201.0,<fifo>"),
            "{}",
            lines[4]
        );
    }

    #[test]
    fn a_sweep_with_units_missing_is_refused_unless_a_partial_one_is_asked_for() {
        let out = tempfile::tempdir().unwrap();
        let refused = gather(&small(), out.path(), &GatherConfig::default()).unwrap_err();
        assert!(refused.to_string().contains("no unit"));
        run_in_order(out.path(), &[0, 3]);
        let refused = gather(&small(), out.path(), &GatherConfig::default())
            .unwrap_err()
            .to_string();
        assert!(refused.contains("missing are 1-2,4-5"), "{refused}");
        let partial = GatherConfig {
            partial: true,
            ..GatherConfig::default()
        };
        gather(&small(), out.path(), &partial).unwrap();
        assert_eq!(
            fs::read_to_string(out.path().join("results.csv"))
                .unwrap()
                .lines()
                .count(),
            3
        );
    }

    #[test]
    fn a_figure_that_was_changed_is_refused_by_file_and_hashes_and_made_again() {
        let (manifest, out) = (small(), tempfile::tempdir().unwrap());
        let run = |index| run_unit(&manifest.unit(index).unwrap(), out.path(), &work).unwrap();
        for unit in manifest.units() {
            run(unit.index);
        }
        let path = unit_folder(out.path(), 1).join(RESULT_FILE);
        let whole = fs::read_to_string(&path).unwrap();
        let gathered = collect(&manifest, out.path(), false).unwrap();
        let figure = gathered[1].scalars["metrics.avg_jct_s"].to_string();
        let other = gathered[0].scalars["metrics.avg_jct_s"].to_string();
        fs::write(&path, whole.replace(&figure, "1.5")).unwrap();
        let refused = collect(&manifest, out.path(), true).unwrap_err();
        assert_eq!(refused.exit_code(), crate::error::EXIT_CONFIG);
        let said = refused.to_string();
        for words in ["units/1/result.json", "SHA-256 ", "found one of ", "--index 1"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        // A value of another unit, with its hash, is no better.
        let first = fs::read_to_string(unit_folder(out.path(), 0).join(RESULT_FILE)).unwrap();
        let line = |text: &str| -> String {
            let mut lines = text.lines().filter(|line| line.contains("value_hash"));
            lines.next().unwrap().to_string()
        };
        let swapped = whole
            .replace(&figure, &other)
            .replace(&line(&whole), &line(&first));
        fs::write(&path, swapped).unwrap();
        assert!(collect(&manifest, out.path(), true).is_err());
        run(1);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        collect(&manifest, out.path(), false).unwrap();
    }
}
