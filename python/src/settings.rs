//! Settings from Python: a registered environment with some keys changed, at any depth.

use pleach_env::Error;
use pleach_env::workload::generate::GeneratorConfig;
use pleach_env::{AutoresetMode, EnvConfig, WorkloadConfig};
use pleach_scheduler::Problem;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::errors;

fn refused(value: impl ToString, allowed: impl ToString) -> Error {
    Error::Problem(Problem::new(
        "settings of the environment",
        value,
        allowed,
        "help(pleach.PleachEnv) names them",
    ))
}

/// The mode of a name.
pub(crate) fn autoreset(mode: &str) -> PyResult<AutoresetMode> {
    match mode {
        "same-step" => Ok(AutoresetMode::SameStep),
        "next-step" => Ok(AutoresetMode::NextStep),
        "disabled" => Ok(AutoresetMode::Disabled),
        other => Err(errors::refused(
            "autoreset_mode",
            other,
            "same-step, next-step, disabled",
            "gymnasium.vector.AutoresetMode has them.",
        )),
    }
}

/// The settings of `id` with the changes of `text`, an object in JSON. Besides the keys of [`EnvConfig`] it takes `num_jobs`,
/// `load`, and the name of a generator as `workload`.
pub(crate) fn settings(id: &str, text: &str) -> Result<EnvConfig, Error> {
    let mut config = EnvConfig::registered(id)?;
    let changes: Value =
        serde_json::from_str(text).map_err(|error| refused(error, "an object of settings"))?;
    let Value::Object(mut changes) = changes else {
        return Err(refused(changes, "an object of settings"));
    };
    if let Some(Value::String(name)) = changes.get("workload") {
        config.workload = WorkloadConfig::Generate(GeneratorConfig::preset(name)?);
        changes.remove("workload");
    }
    let num_jobs = take(
        &mut changes,
        "num_jobs",
        "a whole number of at least 1",
        |value| value.as_u64().filter(|num| *num > 0),
    )?;
    let load = take(&mut changes, "load", "0.01 to 10", |value| {
        value.as_f64().filter(|load| (0.01..=10.0).contains(load))
    })?;
    let mut whole = serde_json::to_value(&config).map_err(|error| refused(error, "settings in JSON"))?;
    merge(&mut whole, Value::Object(changes));
    let mut config: EnvConfig =
        serde_json::from_value(whole).map_err(|error| refused(error, "the keys of an environment"))?;
    config.workload = config.workload.resized(num_jobs.map(|num| num as usize), load);
    config.validate()?;
    Ok(config)
}

/// The settings of each of N environments, where there are changes.
///
/// # Errors
/// As [`settings`].
pub(crate) fn settings_of_each(
    id: &str,
    changes: &[Option<String>],
) -> Result<Vec<Option<EnvConfig>>, Error> {
    let each = changes.iter().map(Option::as_deref);
    each.map(|one| one.map(|text| settings(id, text)).transpose())
        .collect()
}

/// The keys of settings, those that [`settings`] takes for short among them.
///
/// # Errors
/// None in practice: settings can be written.
#[pyfunction]
pub(crate) fn setting_names() -> PyResult<Vec<String>> {
    let whole = serde_json::to_value(EnvConfig::default());
    let whole = whole.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let keys = whole.as_object().into_iter().flat_map(Map::keys).cloned();
    Ok(keys
        .chain(["columns", "num_jobs", "load"].map(String::from))
        .collect())
}

fn take<T>(
    changes: &mut Map<String, Value>,
    key: &str,
    allowed: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, Error> {
    match changes.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match read(&value) {
            Some(read) => Ok(Some(read)),
            None => Err(refused(format!("{key} = {value}"), allowed)),
        },
    }
}

/// Objects are merged key by key; everything else is replaced, and so is an object of another kind or preset.
pub(crate) fn merge(whole: &mut Value, changes: Value) {
    match (whole, changes) {
        (Value::Object(whole), Value::Object(changes)) if !is_other_kind(whole, &changes) => {
            for (key, change) in changes {
                merge(whole.entry(key).or_insert(Value::Null), change);
            }
        }
        (whole, changes) => *whole = changes,
    }
}

fn is_other_kind(whole: &Map<String, Value>, changes: &Map<String, Value>) -> bool {
    const KINDS: [&str; 3] = ["generate", "file", "mixture"];
    let kind = |map: &Map<String, Value>| KINDS.into_iter().find(|kind| map.contains_key(*kind));
    let preset = changes.get("preset");
    kind(changes).is_some_and(|new| kind(whole) != Some(new))
        || preset.is_some_and(|new| whole.get("preset") != Some(new))
}
