//! What the units of a sweep found, in the order of units.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::Problem;
use serde_json::Value;

use super::index_list::compress;
use super::manifest::{Manifest, ManifestUnit};
use super::rungs::{Place, places};
use super::scalars::scalars_of;
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
/// [`Error::Problem`] where a result was changed after it was written, or units are missing and `partial` is not set;
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
        return Err(Problem::contract(
            format!("the sweep {}", manifest.name()),
            format!("{} results", units.len() + missing.len()),
            format!("{}; missing are {}", units.len(), compress(&missing)),
            "Run them first, or gather what is there with --partial.",
        )
        .into());
    }
    Ok(units)
}

fn altered(out: &Path, index: usize, written: String, found: String) -> Error {
    Problem::contract(
        format!("{}", unit_folder(out, index).join(RESULT_FILE).display()),
        format!("a value of SHA-256 {written}, with which it was written"),
        format!("one of {found}"),
        format!("It was changed afterwards; pleach sweep run --index {index} makes it again."),
    )
    .into()
}
