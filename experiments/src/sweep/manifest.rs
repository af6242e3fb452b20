//! The manifest: what there is to do. Written once by `plan`, read by every unit, never changed.
//!
//! It travels between machines and people, so it is checked as if a stranger had written it: layout version, unknown
//! keys, bounds, that unit `k` is at place `k`, that keys are plain names, and that every hash is the hash of what the
//! entry says. A manifest of another version of the program is refused too: a sweep half made by each would compare two
//! programs and not two policies.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::halving::{Halving, RUNGS_MAX};
use crate::error::Error;
use crate::file_kind::FileKind;
use crate::run_folder::atomic_file::{read_json, write_json};
use crate::run_folder::hash::hash_json;

/// Units of one sweep, at most.
pub(crate) const MAX_UNITS: usize = 100_000;
/// Size of a manifest, at most.
const MANIFEST_BYTES_MAX: u64 = 128 << 20;
/// Version of the layout.
const SCHEMA: u32 = 1;

/// The manifest of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    schema: u32,
    name: String,
    version: String,
    base: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    halving: Option<Halving>,
    units: Vec<ManifestUnit>,
}

/// One unit as the manifest holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestUnit {
    /// Place in the manifest, from 0.
    pub index: usize,
    /// What this unit sets, by dotted key.
    pub params: BTreeMap<String, Value>,
    /// The listed seed; pairs are made of units with the same one.
    pub replicate: u64,
    /// The seed to use, derived from the sweep's root seed and the replicate; below 2^53.
    pub seed: u64,
    /// Hex SHA-256 of (version, configuration, seed).
    pub hash: String,
}

/// One unit, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitSpec {
    /// Place in the manifest, from 0.
    pub index: usize,
    /// What this unit sets, by dotted key.
    pub params: BTreeMap<String, Value>,
    /// The listed seed.
    pub replicate: u64,
    /// The seed to use.
    pub seed: u64,
    /// Hex SHA-256 of (version, configuration, seed).
    pub hash: String,
    /// The base configuration with the parameters put in.
    pub config: Value,
    /// Whether a rung follows, so that the unit is judged on lists that choose.
    pub is_rung: bool,
    /// Place and hash of the same configuration with the same seed on the rung below, where there is one.
    pub below: Option<(usize, String)>,
}

impl Manifest {
    /// A manifest of `units`, whose hashes are filled in here.
    ///
    /// # Errors
    /// [`Error::Problem`] where a key cannot be used.
    pub fn new(name: String, base: Map<String, Value>, units: Vec<ManifestUnit>) -> Result<Manifest, Error> {
        let version = env!("CARGO_PKG_VERSION").to_string();
        let mut manifest = Manifest {
            schema: SCHEMA,
            name,
            version,
            base,
            halving: None,
            units,
        };
        for index in 0..manifest.units.len() {
            manifest.units[index].hash = manifest.hash_of(&manifest.units[index])?;
        }
        Ok(manifest)
    }

    /// The same with rungs: units are in the order of rungs, as many on each.
    #[must_use]
    pub(super) fn with_rungs(self, halving: Option<Halving>) -> Manifest {
        Manifest { halving, ..self }
    }

    /// Whether this is the other one with more draws: all its units are there at their places.
    #[must_use]
    pub fn goes_on_from(&self, other: &Manifest) -> bool {
        let alike = (&self.name, &self.base, &self.halving) == (&other.name, &other.base, &other.halving);
        alike && self.units.starts_with(&other.units)
    }

    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// [`Error::Problem`], [`Error::Problem`] where it is not a manifest, [`Error::Problem`] where it does not fit this program.
    pub fn read(path: &Path) -> Result<Manifest, Error> {
        let read = read_json(path, MANIFEST_BYTES_MAX);
        let manifest: Manifest = read.map_err(|error| FileKind::Manifest.or_other(path, error))?;
        let unfit = |what: &str, expected: String, found: String| {
            Problem::contract(
                format!("{what} of {}", path.display()),
                expected,
                found,
                "Plan the sweep again with this program.",
            )
            .into()
        };
        if manifest.schema != SCHEMA {
            return Err(unfit("layout", SCHEMA.to_string(), manifest.schema.to_string()));
        }
        let version = env!("CARGO_PKG_VERSION");
        if manifest.version != version {
            return Err(unfit("program version", version.to_string(), manifest.version));
        }
        if manifest.units.is_empty() || manifest.units.len() > MAX_UNITS {
            return Err(Error::data(
                path,
                format!("{} units; 1 to {MAX_UNITS} allowed", manifest.units.len()),
            ));
        }
        if let Some(halving) = &manifest.halving {
            rungs_fit(halving, &manifest).map_err(|message| Error::data(path, message))?;
        }
        for (place, unit) in manifest.units.iter().enumerate() {
            if unit.index != place {
                return Err(Error::data(
                    path,
                    format!("unit {place} has index {}", unit.index),
                ));
            }
            let hash = manifest.hash_of(unit)?;
            if unit.hash != hash {
                return Err(unfit(&format!("hash of unit {place}"), hash, unit.hash.clone()));
            }
        }
        Ok(manifest)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// [`Error::Problem`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        write_json(path, self)
    }

    /// Name of the sweep.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many units there are; at least one in a manifest that was read.
    #[must_use]
    pub fn num_units(&self) -> usize {
        self.units.len()
    }

    /// Its rungs, where it has some.
    #[must_use]
    pub fn halving(&self) -> Option<&Halving> {
        self.halving.as_ref()
    }

    /// Units of a rung; all of them where there are none.
    #[must_use]
    pub(super) fn units_per_rung(&self) -> usize {
        let num_rungs = self.halving.as_ref().map_or(1, |halving| halving.values.len());
        (self.units.len() / num_rungs).max(1)
    }

    /// Seeds of each configuration: units that set the same stand together.
    pub(super) fn num_replicates(&self) -> usize {
        let first = self.units.first().map(|unit| &unit.params);
        let alike = self.units.iter().take_while(|unit| Some(&unit.params) == first);
        alike.count().clamp(1, self.units_per_rung())
    }

    /// The entries, by index.
    #[must_use]
    pub fn units(&self) -> &[ManifestUnit] {
        &self.units
    }

    /// Hex SHA-256 over the hashes of all units.
    #[must_use]
    pub fn hash(&self) -> String {
        hash_json(&json!(
            self.units
                .iter()
                .map(|unit| unit.hash.as_str())
                .collect::<Vec<_>>()
        ))
    }

    /// The configuration that all units share.
    #[must_use]
    pub fn base(&self) -> &Map<String, Value> {
        &self.base
    }

    /// Unit `index` with its whole configuration.
    ///
    /// # Errors
    /// [`Error::Problem`] where there is no such unit.
    pub fn unit(&self, index: usize) -> Result<UnitSpec, Error> {
        let unit = self.units.get(index).ok_or_else(|| {
            let allowed = format!("0 to {}", self.units.len().saturating_sub(1));
            Error::config("index", index, allowed, "The manifest has no such unit.")
        })?;
        Ok(UnitSpec {
            index,
            params: unit.params.clone(),
            replicate: unit.replicate,
            seed: unit.seed,
            hash: unit.hash.clone(),
            config: self.config_of(unit)?,
            is_rung: unit.index / self.units_per_rung() + 1
                < self.halving.as_ref().map_or(1, |halving| halving.values.len()),
            below: unit
                .index
                .checked_sub(self.units_per_rung())
                .map(|below| (below, self.units[below].hash.clone())),
        })
    }

    fn config_of(&self, unit: &ManifestUnit) -> Result<Value, Error> {
        let mut config = self.base.clone();
        for (key, value) in &unit.params {
            insert(&mut config, key, value)?;
        }
        Ok(Value::Object(config))
    }

    fn hash_of(&self, unit: &ManifestUnit) -> Result<String, Error> {
        let config = self.config_of(unit)?;
        Ok(hash_json(
            &json!({"version": self.version, "config": config, "seed": unit.seed}),
        ))
    }
}

/// Whether the units of a manifest are those of its rungs: all configurations on each, in one order. Else in words, what is not so.
fn rungs_fit(halving: &Halving, manifest: &Manifest) -> Result<(), String> {
    let num = halving.values.len();
    if !(2..=RUNGS_MAX).contains(&num) || !(2..=100).contains(&halving.keep) {
        return Err(format!("{num} rungs of which one in {} goes on", halving.keep));
    }
    let per_rung = manifest.units_per_rung();
    if !manifest.num_units().is_multiple_of(num) || !per_rung.is_multiple_of(manifest.num_replicates()) {
        return Err(format!("{} units on {num} rungs", manifest.num_units()));
    }
    for (place, unit) in manifest.units().iter().enumerate() {
        if unit.params.get(&halving.setting) != Some(&halving.values[place / per_rung].into()) {
            return Err(format!(
                "unit {place} has another {} than its rung",
                halving.setting
            ));
        }
    }
    Ok(())
}

/// Puts `value` under the dotted `key`, making tables on the way.
fn insert(config: &mut Map<String, Value>, key: &str, value: &Value) -> Result<(), Error> {
    let plain = |part: &str| {
        !part.is_empty()
            && part.len() <= 64
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let parts: Vec<&str> = key.split('.').collect();
    Error::refuse_if(
        parts.len() > 16 || !parts.iter().all(|part| plain(part)),
        "grid",
        key,
        "names of letters, digits, _ and -, joined by dots",
        "Write workload.load, for example.",
    )?;
    let mut table = config;
    for part in &parts[..parts.len() - 1] {
        let slot = table
            .entry((*part).to_string())
            .or_insert_with(|| Value::Object(Map::new()));
        table = slot.as_object_mut().ok_or_else(|| {
            let hint = "A key of the base or grid is a value, and this one goes below it.";
            Error::config("grid", key, format!("{part} is not a table"), hint)
        })?;
    }
    table.insert(parts[parts.len() - 1].to_string(), value.clone());
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sweep::grid::Grid;

    /// Six units: load 1, 2, 3 and two seeds.
    pub(crate) fn small() -> Manifest {
        let grid: Grid = toml::from_str("name = 'small'\nseeds = 2\n[grid]\nload = [1, 2, 3]").unwrap();
        grid.plan().unwrap()
    }

    fn read_changed(change: impl Fn(&mut Value)) -> Result<Manifest, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep.json");
        let mut value = serde_json::to_value(small()).unwrap();
        change(&mut value);
        std::fs::write(&path, value.to_string()).unwrap();
        Manifest::read(&path)
    }

    #[test]
    fn a_manifest_reads_back_as_it_was_written() {
        assert_eq!(read_changed(|_| ()).unwrap(), small());
        let hashes: std::collections::BTreeSet<_> =
            small().units.iter().map(|unit| unit.hash.clone()).collect();
        assert_eq!(hashes.len(), 6);
    }

    #[test]
    fn a_hostile_manifest_is_refused() {
        let refused = |change: &dyn Fn(&mut Value)| read_changed(change).unwrap_err().to_string();
        assert!(refused(&|m| m["schema"] = json!(2)).contains("layout"));
        assert!(refused(&|m| m["version"] = json!("9.9.9")).contains("program version"));
        assert!(refused(&|m| m["extra"] = json!(1)).contains("unknown field"));
        assert!(refused(&|m| m["units"] = json!([])).contains("0 units"));
        assert!(refused(&|m| m["units"][2]["index"] = json!(0)).contains("unit 2 has index 0"));
        assert!(refused(&|m| m["units"][2]["index"] = json!(-1)).contains("invalid value"));
        assert!(refused(&|m| m["units"][1]["seed"] = json!(5)).contains("hash of unit 1"));
        assert!(refused(&|m| m["units"][1]["params"]["load"] = json!(5)).contains("hash of unit 1"));
        assert!(refused(&|m| m["base"]["more"] = json!(5)).contains("hash of unit 0"));
        assert!(refused(&|m| m["units"][0]["params"]["../x"] = json!(5)).contains("letters"));
        assert!(refused(&|m| m["units"][0]["params"]["load.x"] = json!(5)).contains("not a table"));
        assert!(refused(&|m| m["units"][0] = json!("../../etc")).contains("invalid type"));
        // Deep nesting must end in an error and not in a stack overflow.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep.json");
        std::fs::write(&path, "[".repeat(1_000_000)).unwrap();
        assert!(Manifest::read(&path).is_err_and(|error| error.to_string().starts_with("data: ")));
    }

    #[test]
    fn a_unit_beyond_the_end_is_a_config_error() {
        assert!(small().unit(6).unwrap_err().to_string().contains("0 to 5"));
    }
}
