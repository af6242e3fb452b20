//! Which units of a sweep with rungs are to run.
//!
//! It follows from the results of the rung before, and from nothing else: the same wherever and in whatever order they ran. A rung is
//! decided once all its units have ended; a unit that failed for good puts its configuration behind all others.

use std::path::Path;

use serde_json::Value;

use super::figures::{mean_log, own_figures, sign};
use super::manifest::{Manifest, ManifestUnit};
use super::unit::{FailureKind, ResultState, read_failure, read_result, unit_folder};
use crate::evaluate::stats::mean;

/// What becomes of a unit of a sweep with rungs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It runs, or has run.
    Runs,
    /// Its configuration did not come so far: it is not to run.
    Pruned,
    /// The rung before is not decided yet.
    Waits,
}

/// The place of each unit, by index; all run in a sweep without rungs.
#[must_use]
pub fn places(manifest: &Manifest, out: &Path) -> Vec<Place> {
    let mut places = vec![Place::Runs; manifest.num_units()];
    let Some(halving) = manifest.halving() else {
        return places;
    };
    let (per_rung, num_seeds) = (manifest.units_per_rung(), manifest.num_replicates());
    let num_configurations = per_rung / num_seeds;
    let mut going: Vec<usize> = (0..num_configurations).collect();
    for rung in 0..halving.values.len() {
        let units = rung * per_rung..(rung + 1) * per_rung;
        places[units].fill(Place::Pruned);
        let units_of = |configuration: usize| {
            let first = rung * per_rung + configuration * num_seeds;
            first..first + num_seeds
        };
        for configuration in &going {
            places[units_of(*configuration)].fill(Place::Runs);
        }
        if rung + 1 == halving.values.len() {
            break;
        }
        let mut ranked = Vec::new();
        for configuration in &going {
            match score(manifest, out, &halving.metric, units_of(*configuration)) {
                Some(score) => ranked.push((score, *configuration)),
                None => {
                    places[(rung + 1) * per_rung..].fill(Place::Waits);
                    return places;
                }
            }
        }
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ranked.truncate(going.len().div_ceil(halving.keep as usize));
        going = ranked
            .into_iter()
            .map(|(_, configuration)| configuration)
            .collect();
    }
    places
}

/// What a configuration is ranked by, less being better: the mean of its units; infinite where one of them failed for good or has
/// no such number. None while one has not ended.
pub(super) fn score(
    manifest: &Manifest,
    out: &Path,
    metric: &str,
    units: std::ops::Range<usize>,
) -> Option<f64> {
    let num = units.len();
    let mut sum = 0.0;
    for unit in &manifest.units()[units] {
        let folder = unit_folder(out, unit.index);
        match read_result(&folder, unit.index, &unit.hash) {
            ResultState::Done(result) => {
                let config = manifest.unit(unit.index).ok()?.config;
                sum += figure((unit, &result.value), &config, metric);
            }
            _ => match read_failure(&folder, unit)?.kind {
                FailureKind::Temporary => return None,
                FailureKind::Config | FailureKind::Failed => sum += f64::INFINITY,
            },
        }
    }
    Some(sum / num as f64)
}

/// One number of a unit: the mean logarithm over its lists, so that each list counts alike; the mean where a figure has none.
fn figure(unit: (&ManifestUnit, &Value), config: &Value, metric: &str) -> f64 {
    let own = own_figures(unit, config, metric);
    let values: Vec<f64> = own.iter().map(|(_, figure)| *figure).collect();
    let found = mean_log(&own).or_else(|| (!values.is_empty()).then(|| mean(&values)));
    found
        .filter(|value| value.is_finite())
        .map_or(f64::INFINITY, |value| sign(metric) * value)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::progress::Watcher;
    use crate::sweep::engine::{EngineConfig, run};
    use crate::sweep::grid::Grid;
    use crate::sweep::halving::HalvingFile;
    use crate::sweep::manifest::UnitSpec;
    use crate::sweep::status::Status;
    use crate::sweep::unit::run_unit;
    use crate::sweep::{UnitError, manifest};
    use serde_json::json;

    /// Nine configurations of two seeds on three rungs.
    fn nine() -> Manifest {
        let text = "name = 'x'\nseeds = 2\n[grid]\nquality = [5, 3, 9, 1, 7, 2, 8, 4, 6]\n\
                    [halving]\nsetting = 'train.num_updates'\nvalues = [1, 3, 9]";
        toml::from_str::<Grid>(text).unwrap().plan().unwrap()
    }

    /// What is better is better on every rung.
    fn work(spec: &UnitSpec) -> Result<Value, UnitError> {
        let quality = spec.config["quality"].as_f64().unwrap_or(0.0);
        Ok(json!({"avg_jct_s": quality * 100.0 + spec.replicate as f64, "is_rung": spec.is_rung}))
    }

    fn qualities(manifest: &Manifest, places: &[Place], rung: usize) -> Vec<i64> {
        let units = manifest.units().iter().zip(places);
        let of_rung = units.filter(|(unit, place)| unit.index / 18 == rung && **place == Place::Runs);
        let mut found: Vec<i64> = of_rung
            .filter_map(|(unit, _)| unit.params["quality"].as_i64())
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn a_third_goes_on_from_rung_to_rung_whatever_the_order_and_a_second_run_runs_nothing() {
        let (manifest, out) = (nine(), tempfile::tempdir().unwrap());
        assert_eq!(manifest.num_units(), 54);
        assert_eq!(manifest.unit(20).unwrap().config["train"]["num_updates"], 3);
        let before = places(&manifest, out.path());
        assert_eq!(before.iter().filter(|place| **place == Place::Waits).count(), 36);
        let config = EngineConfig {
            num_threads: 2,
            num_retries: 0,
        };
        let ran = Mutex::new(Vec::new());
        let counted = |spec: &UnitSpec| {
            ran.lock().unwrap().push(spec.index);
            work(spec)
        };
        let report = run(&manifest, out.path(), config, None, &counted, &Watcher::silent()).unwrap();
        // 9, 3 and 1 configurations with two seeds each.
        assert_eq!((report.num_done, report.failed.len()), (26, 0));
        let after = places(&manifest, out.path());
        assert_eq!(qualities(&manifest, &after, 1), [1, 2, 3]);
        assert_eq!(qualities(&manifest, &after, 2), [1]);
        let status = Status::of(&manifest, out.path());
        assert_eq!((status.pruned.len(), status.waiting.len()), (28, 0));
        assert!(status.to_run().is_empty());
        let report = run(&manifest, out.path(), config, None, &counted, &Watcher::silent()).unwrap();
        assert_eq!(
            (report.num_done, report.num_skipped, ran.lock().unwrap().len()),
            (0, 26, 26)
        );
        // Only the last rung is judged on lists that are reported.
        let is_rung: Vec<bool> = [0, 18, 36]
            .map(|index| manifest.unit(index).unwrap().is_rung)
            .into();
        assert_eq!(is_rung, [true, true, false]);
    }

    #[test]
    fn a_rung_is_not_decided_while_a_unit_may_still_succeed_and_who_failed_is_last() {
        let (manifest, out) = (nine(), tempfile::tempdir().unwrap());
        for unit in &manifest.units()[..18] {
            let spec = manifest.unit(unit.index).unwrap();
            // The best, at place 3, fails for good with one of its seeds; another one for now.
            let failing = |spec: &UnitSpec| match spec.index {
                6 => Err(UnitError::Failed("diverged".into())),
                17 => Err(UnitError::Temporary("no disk".into())),
                _ => work(spec),
            };
            run_unit(&spec, out.path(), &failing).unwrap();
        }
        assert!(
            places(&manifest, out.path())[18..]
                .iter()
                .all(|place| *place == Place::Waits)
        );
        run_unit(&manifest.unit(17).unwrap(), out.path(), &work).unwrap();
        assert_eq!(qualities(&manifest, &places(&manifest, out.path()), 1), [2, 3, 4]);
    }

    #[test]
    fn a_budget_is_not_exceeded_and_rungs_cost_alike() {
        let file: HalvingFile = toml::from_str("setting = 'n'\nrungs = 3\nbudget = 1000").unwrap();
        // 9 * 1 + 3 * 3 + 1 * 9 = 27 for one seed: 54 for two, and 1000 / 54 = 18.
        assert_eq!(file.plan(9, 2).unwrap().values, [18, 54, 162]);
        for (text, words) in [
            ("setting = 'n'", "rungs = 2 to 16"),
            ("setting = 'n'\nrungs = 3\nbudget = 53", "at least 54"),
            ("setting = 'n'\nvalues = [3, 2]", "rising"),
            (
                "setting = 'n'\nvalues = [1, 2]\nrungs = 2\nbudget = 9",
                "either values",
            ),
            ("setting = 'n'\nvalues = [1, 2]\nkeep = 1", "2 to 100"),
        ] {
            let file: HalvingFile = toml::from_str(text).unwrap();
            let said = file.plan(9, 2).unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn a_manifest_whose_units_are_not_those_of_its_rungs_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.json");
        let read = |change: &dyn Fn(&mut Value)| {
            let mut value = serde_json::to_value(nine()).unwrap();
            change(&mut value);
            std::fs::write(&path, value.to_string()).unwrap();
            manifest::Manifest::read(&path)
        };
        assert_eq!(read(&|_| ()).unwrap(), nine());
        for (change, words) in [
            (json!({"values": [1, 3, 8]}), "than its rung"),
            (json!({"values": [1, 3]}), "54 units on 2 rungs"),
            (json!({"keep": 1}), "one in 1"),
            (json!({"setting": "load"}), "another load"),
        ] {
            let said = read(&|value| {
                for (key, new) in change.as_object().unwrap() {
                    value["halving"][key] = new.clone();
                }
            });
            let said = said.unwrap_err().to_string();
            assert!(said.contains(words), "{change}: {said}");
        }
    }
}
