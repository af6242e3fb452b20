//! Generators that a program has beside the presets: a function of settings and a seed, by its name wherever a preset is named.
//!
//! A program says once which they are, before it reads a configuration, and they never change after that: so they are a part of the
//! program as its code is, and no result depends on when they are asked for.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pleach_scheduler::ConfigError;
use serde::{Deserialize, Serialize};

use super::require::require_common;
use crate::Error;
use crate::{Seed, Workload};

/// A generator of a program's own.
#[derive(Clone, Copy, Debug)]
pub struct OwnGenerator {
    /// Name, as presets have one.
    pub name: &'static str,
    /// What it makes, one line.
    pub describe: &'static str,
    /// Jobs, load and settings where none are given.
    pub defaults: fn() -> OwnConfig,
    /// Makes the jobs and their cluster; all that is drawn must come from the seed. Arrivals are then stretched to the load.
    pub make: fn(&OwnConfig, Seed) -> Result<Workload, Error>,
}

/// Settings of a generator of a program's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnConfig {
    /// Which.
    pub name: String,
    /// Jobs, 1 to 10,000,000.
    #[serde(default = "num_jobs")]
    pub num_jobs: usize,
    /// Offered load, 0.001 to 100.
    #[serde(default = "load")]
    pub load: f64,
    /// Numbers by name; what they mean, and which there are, is the generator's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, f64>,
}

fn num_jobs() -> usize {
    200
}

fn load() -> f64 {
    0.8
}

impl OwnConfig {
    /// 200 jobs at load 0.8.
    #[must_use]
    pub fn new(name: &str) -> OwnConfig {
        OwnConfig {
            name: name.to_string(),
            num_jobs: num_jobs(),
            load: load(),
            settings: BTreeMap::new(),
        }
    }

    /// The generator.
    pub(super) fn generator(&self) -> Result<&'static OwnGenerator, ConfigError> {
        let known = || own().iter().map(|own| own.name).collect::<Vec<_>>();
        find(&self.name).ok_or_else(|| {
            let allowed = match known().as_slice() {
                [] => "none: this program has no generators of its own".to_string(),
                names => names.join(", "),
            };
            ConfigError::new(
                "generator.name",
                &self.name,
                allowed,
                "run the program that registers it",
            )
        })
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        self.generator()?;
        require_common(self.num_jobs, self.load)?;
        Ok(())
    }

    pub(super) fn generate(&self, seed: Seed) -> Result<Workload, Error> {
        let workload = (self.generator()?.make)(self, seed)?;
        workload.validate()?;
        workload.scaled_load(self.load / workload.offered_load())
    }
}

static OWN: OnceLock<Vec<OwnGenerator>> = OnceLock::new();

/// Keeps them; false where some are kept already.
pub(super) fn keep(generators: Vec<OwnGenerator>) -> bool {
    OWN.set(generators).is_ok()
}

/// All of them, in the order in which they were named.
#[must_use]
pub fn own() -> &'static [OwnGenerator] {
    OWN.get().map_or(&[], Vec::as_slice)
}

pub(super) fn find(name: &str) -> Option<&'static OwnGenerator> {
    own().iter().find(|own| own.name == name)
}
