//! What the units of a sweep found, in the order of units.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::halving::{Place, places};
use super::index_list::compress;
use super::manifest::{Manifest, ManifestUnit};
use super::unit::{RESULT_FILE, ResultState, read_result, unit_folder};
use crate::error::Error;

/// A unit with what it found.
#[derive(Clone, Debug, PartialEq)]
pub struct GatheredUnit<'a> {
    /// The unit.
    pub unit: &'a ManifestUnit,
    /// What its work returned.
    pub value: Value,
    /// Numbers, texts and truth values of `value` by dotted key; lists are left out.
    pub scalars: BTreeMap<String, Value>,
}

/// Reads all results below `out` in the order of units.
///
/// # Errors
/// [`Error::Contract`] where a result was changed after it was written, or units are missing and `partial` is not set;
/// [`Error::Failed`] where all are missing.
pub fn collect<'a>(
    manifest: &'a Manifest,
    out: &Path,
    partial: bool,
) -> Result<Vec<GatheredUnit<'a>>, Error> {
    let mut units = Vec::new();
    let mut missing = Vec::new();
    let places = places(manifest, out);
    for unit in manifest.units() {
        if places[unit.index] == Place::Pruned {
            continue;
        }
        match read_result(&unit_folder(out, unit.index), unit.index, &unit.hash) {
            ResultState::Done(result) => {
                let scalars = scalars_of(&result.value);
                units.push(GatheredUnit {
                    unit,
                    value: result.value,
                    scalars,
                });
            }
            ResultState::Altered { written, found } => {
                return Err(altered(out, unit.index, written, found));
            }
            ResultState::Stale | ResultState::Missing => missing.push(unit.index),
        }
    }
    if units.is_empty() {
        return Err(Error::Failed(
            "no unit of this sweep has a result yet".to_string(),
        ));
    }
    if !missing.is_empty() && !partial {
        return Err(Error::Contract {
            what: format!("the sweep {}", manifest.name()),
            expected: format!("{} results", units.len() + missing.len()),
            found: format!("{}; missing are {}", units.len(), compress(&missing)),
            hint: "Run them first, or gather what is there with --partial.".to_string(),
        });
    }
    Ok(units)
}

fn altered(out: &Path, index: usize, written: String, found: String) -> Error {
    Error::Contract {
        what: format!("{}", unit_folder(out, index).join(RESULT_FILE).display()),
        expected: format!("a value of SHA-256 {written}, with which it was written"),
        found: format!("one of {found}"),
        hint: format!("It was changed afterwards; pleach sweep run --index {index} makes it again."),
    }
}

/// A parameter or scalar as text without quotes.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Numbers, texts and truth values of a result by dotted key.
pub(super) fn scalars_of(value: &Value) -> BTreeMap<String, Value> {
    let mut scalars = BTreeMap::new();
    flatten("", value, &mut scalars);
    scalars
}

fn flatten(prefix: &str, value: &Value, scalars: &mut BTreeMap<String, Value>) {
    let below = |table: &Map<String, Value>, scalars: &mut BTreeMap<String, Value>| {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}.{name}")
            };
            flatten(&key, value, scalars);
        }
    };
    match value {
        Value::Object(table) => below(table, scalars),
        Value::Array(_) | Value::Null => {}
        scalar => {
            let key = if prefix.is_empty() { "value" } else { prefix };
            scalars.insert(key.to_string(), scalar.clone());
        }
    }
}
