//! A run: its configuration, its folder, and artefacts that are made once.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SiteConfig;
use crate::error::Error;
use crate::evaluate::instances::seeds;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::progress::Watcher;
use crate::run_folder::atomic_file;
use crate::twin;

/// Largest artefact that is read again, bytes.
pub(super) const ARTEFACT_BYTES_MAX: u64 = 64 << 20;
/// The twin's pictures.
pub(super) const TWIN_PLOTS: &str = "twin-plots.json";
/// What the tree is called, and the formula.
pub(super) const TREE: &str = "tree";
pub(super) const FORMULA: &str = "formula";
/// What is promised of what is deployed.
pub(super) const PROMISE: &str = "promise.json";
/// The change of settings that is to be made, of Slurm and of Kubernetes.
pub(super) const CHANGE: [&str; 2] = ["change.conf", "change.yaml"];

/// A change of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Its name among the candidates.
    pub(super) name: String,
    /// Lines that take the place of those with the same keys.
    pub(super) lines: Vec<String>,
    /// The whole file, where it is not the site's own with these lines at its end.
    pub(super) file: Option<String>,
    /// Where the lines belong, and what makes them count.
    pub(super) place: &'static str,
}

/// A run.
pub struct Site<'a> {
    /// What it works on.
    pub config: &'a SiteConfig,
    /// Where its artefacts are.
    pub folder: &'a Path,
    /// Receives the progress, and may end the run.
    pub watcher: &'a Watcher,
    /// What could be set otherwise, once it was read.
    pub(super) changes: OnceCell<Vec<Change>>,
}

/// What is said on the way.
pub(super) type Say<'a> = &'a mut dyn FnMut(&str) -> Result<(), Error>;

impl<'a> Site<'a> {
    /// A run of which nothing is read yet.
    #[must_use]
    pub fn new(config: &'a SiteConfig, folder: &'a Path, watcher: &'a Watcher) -> Site<'a> {
        Site {
            config,
            folder,
            watcher,
            changes: OnceCell::new(),
        }
    }
}

impl Site<'_> {
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// An artefact that is there, or that is made now.
    pub(super) fn kept<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let path = self.file(name);
        if path.is_file() {
            return atomic_file::read_json(&path, ARTEFACT_BYTES_MAX);
        }
        let made = make()?;
        atomic_file::write_json(&path, &made)?;
        Ok(made)
    }

    /// The simulated cluster. A list that says when its jobs began is a record, with starts, links and failures in its run times.
    pub(super) fn sim(&self, scheduling: &SchedulingConfig, list: &Workload) -> SimConfig {
        SimConfig {
            seed: seeds(self.config.seed, "test", 1)[0].0,
            ..scheduling.over(&[], twin::is_record(list))
        }
    }
}

/// `3 the twin: pleach twin ...`, with an empty line before it.
pub(super) fn step(number: u32, what: &str, command: &str) -> String {
    format!("\n{number}  {what}\n   {command}")
}

/// Settings that no flag has.
const WITHOUT_FLAG: [&str; 3] = ["mixed_types", "stop_grace_s", "belief_errors"];

/// A line that names the settings which the printed commands lack; none where they have all.
pub(super) fn left_out_of_commands(scheduling: &SchedulingConfig) -> Option<String> {
    let keys = serde_json::to_value(scheduling).ok()?;
    let is_set = |key: &&str| {
        let value = keys.get(*key).unwrap_or(&serde_json::Value::Null);
        !value.is_null() && *value != serde_json::Value::Bool(false)
    };
    let found: Vec<&str> = WITHOUT_FLAG.into_iter().filter(is_set).collect();
    let names = found.join(", ");
    (!found.is_empty())
        .then(|| format!("   The printed commands play without {names}: only site.toml has these."))
}

/// Settings as flags of the command line; those that are tables in files are left out.
pub(super) fn flags_of(scheduling: &SchedulingConfig) -> String {
    let mut flags = String::new();
    let Ok(serde_json::Value::Object(keys)) = serde_json::to_value(scheduling) else {
        return flags;
    };
    for (key, value) in keys
        .into_iter()
        .filter(|(key, _)| !WITHOUT_FLAG.contains(&key.as_str()))
    {
        let name = key.replace('_', "-");
        match value {
            serde_json::Value::Bool(true) => flags += &format!(" --{name}"),
            serde_json::Value::Number(number) => flags += &format!(" --{name} {number}"),
            serde_json::Value::String(word) => flags += &format!(" --{name} {word}"),
            _ => {}
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_a_flag_are_named_and_no_flag() {
        let plain = SchedulingConfig::default();
        assert_eq!(left_out_of_commands(&plain), None);
        let set = SchedulingConfig {
            stop_grace_s: Some(0.0),
            belief_errors: true,
            keep_places_s: Some(60.0),
            ..plain
        };
        assert_eq!(flags_of(&set), " --keep-places-s 60.0");
        let line = left_out_of_commands(&set).unwrap();
        assert!(line.contains("without stop_grace_s, belief_errors:"), "{line}");
    }
}
