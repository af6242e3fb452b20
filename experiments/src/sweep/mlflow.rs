//! The units of a sweep as runs of MLflow's file store, for `mlflow ui --backend-store-uri DIR`.
//!
//! An experiment for the sweep, a run for each unit: what it sets as parameters, the numbers of its result as metrics, its curves as
//! metrics with steps, its folder as its artefacts. Ids are hashes of what they stand for, so writing it again replaces the same
//! files. A result is no function of the clock, and times are 0.
//!
//! # Source
//! The layout that MLflow 2 and 3 read: `EXPERIMENT/meta.yaml`, `EXPERIMENT/RUN/{meta.yaml, params, metrics, tags, artifacts}`; a line
//! of a metric is time, value, step. MLflow 3.17 was seen to read it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::collect::GatheredUnit;
use super::manifest::Manifest;
use super::scalars::{scalars_of, show};
use super::unit::unit_folder;
use crate::error::Error;
use crate::run_folder::atomic_file;

/// Length of a name or value, at most, bytes: MLflow refuses longer ones.
const KEY_BYTES_MAX: usize = 250;
const VALUE_BYTES_MAX: usize = 6000;

/// Writes the sweep into the store at `store`; `out` has the units.
///
/// # Errors
/// [`Error::Problem`].
pub(super) fn write(
    store: &Path,
    manifest: &Manifest,
    out: &Path,
    units: &[GatheredUnit<'_>],
) -> Result<(), Error> {
    let id = experiment_id(manifest);
    let folder = store.join(&id);
    let out = out
        .canonicalize()
        .map_err(|error| Error::io("read", out, error))?;
    let name = format!("{} {}", manifest.name(), &manifest.hash()[..8]);
    put(
        &folder.join("meta.yaml"),
        &format!(
            "artifact_location: {}\ncreation_time: 0\nexperiment_id: '{id}'\nlast_update_time: 0\nlifecycle_stage: active\nname: {}\n",
            quoted(&address(&out)),
            quoted(&name)
        ),
    )?;
    for unit in units {
        let run_id = &unit.unit.hash[..32];
        let run = folder.join(run_id);
        let index = unit.unit.index;
        for part in ["artifacts", "metrics", "params"] {
            let folder = run.join(part);
            fs::create_dir_all(&folder).map_err(|error| Error::io("make", &folder, error))?;
        }
        put(
            &run.join("meta.yaml"),
            &format!(
                "artifact_uri: {}\nend_time: 0\nentry_point_name: ''\nexperiment_id: '{id}'\nlifecycle_stage: active\n\
                 run_id: {run_id}\nrun_name: unit {index}\nrun_uuid: {run_id}\nsource_name: ''\nsource_type: 4\n\
                 source_version: ''\nstart_time: 0\nstatus: 3\ntags: []\nuser_id: ''\n",
                quoted(&address(&unit_folder(&out, index)))
            ),
        )?;
        put(&run.join("tags/mlflow.runName"), &format!("unit {index}"))?;
        put(&run.join("params/seed"), &unit.unit.seed.to_string())?;
        let config = manifest.unit(index)?.config;
        for (key, value) in scalars_of(&config) {
            let mut text = show(&value);
            text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX));
            put_named(&run.join("params"), &key, &text)?;
        }
        for (key, value) in &unit.scalars {
            match value.as_f64() {
                Some(value) => put_named(&run.join("metrics"), key, &format!("0 {value} 0\n"))?,
                None => put_named(&run.join("tags"), key, &show(value))?,
            }
        }
        for (key, lines) in curves(&unit.value["report"]) {
            put_named(&run.join("metrics"), &key, &lines)?;
        }
    }
    Ok(())
}

/// 18 digits, as the store's own ids have.
fn experiment_id(manifest: &Manifest) -> String {
    let number = u64::from_str_radix(&manifest.hash()[..15], 16).unwrap_or_default();
    format!("{:018}", number % 1_000_000_000_000_000_000)
}

/// Lists of points with an `update` or a `generation`: the lines of a metric for each other number of them.
fn curves(report: &Value) -> Vec<(String, String)> {
    let mut curves: std::collections::BTreeMap<String, String> = Default::default();
    for (key, list) in report.as_object().into_iter().flatten() {
        for point in list.as_array().into_iter().flatten() {
            let step = ["update", "generation"]
                .iter()
                .find_map(|name| point[name].as_u64());
            let Some(step) = step else { continue };
            for (name, value) in point.as_object().into_iter().flatten() {
                if let Some(value) = value
                    .as_f64()
                    .filter(|_| name != "update" && name != "generation")
                {
                    let _ = writeln!(
                        curves.entry(format!("{key}.{name}")).or_default(),
                        "0 {value} {step}"
                    );
                }
            }
        }
    }
    curves.into_iter().collect()
}

/// A file of a name that MLflow takes: letters, digits, `_`, `-`, `.` and blanks; other characters become `_`.
fn put_named(folder: &Path, key: &str, text: &str) -> Result<(), Error> {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_-. ".contains(c) {
            c
        } else {
            '_'
        }
    };
    let mut name: String = key.chars().map(plain).collect();
    name.truncate(KEY_BYTES_MAX);
    if name.trim_matches('.').is_empty() {
        return Ok(());
    }
    put(&folder.join(name), text)
}

fn put(path: &Path, text: &str) -> Result<(), Error> {
    atomic_file::write(path, text.as_bytes())
}

fn address(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// A scalar of YAML that says no more than its text.
fn quoted(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    format!(
        "'{}'",
        text.chars().map(plain).collect::<String>().replace('\'', "''")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::manifest::tests::small;
    use serde_json::json;

    #[test]
    fn a_unit_is_a_run_with_parameters_metrics_and_curves() {
        let (manifest, out) = (small(), tempfile::tempdir().unwrap());
        let value = json!({
            "metrics": {"avg_jct_s": 12.5}, "policy": "<fifo>",
            "report": {"validation": [{"update": 5, "ratio": 1.5}, {"update": 10, "ratio": 1.25}]},
        });
        let scalars = scalars_of(&value);
        let unit = GatheredUnit {
            unit: &manifest.units()[2],
            value,
            scalars,
        };
        let store = out.path().join("mlruns");
        for _ in 0..2 {
            write(&store, &manifest, out.path(), std::slice::from_ref(&unit)).unwrap();
        }
        let run = store.join(experiment_id(&manifest)).join(&unit.unit.hash[..32]);
        let read = |name: &str| fs::read_to_string(run.join(name)).unwrap();
        assert_eq!(read("params/load"), "2");
        assert_eq!(read("metrics/metrics.avg_jct_s"), "0 12.5 0\n");
        assert_eq!(read("metrics/validation.ratio"), "0 1.5 5\n0 1.25 10\n");
        assert_eq!(read("tags/policy"), "<fifo>");
        assert!(read("meta.yaml").contains("/units/2'\nend_time: 0\n"));
        assert_eq!(fs::read_dir(&store).unwrap().count(), 1);
    }

    #[test]
    fn names_that_a_store_has_no_room_for_cannot_lead_out_of_it() {
        let folder = tempfile::tempdir().unwrap();
        for key in ["../x", "..", "a/b", "é"] {
            put_named(&folder.path().join("in"), key, "1").unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(folder.path().join("in"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [".._x", "_", "a_b"]);
        assert_eq!(quoted("it's\n"), "'it''s '");
    }
}
