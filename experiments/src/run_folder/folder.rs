//! An open run.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Artefact;
use super::atomic_file;
use super::description::RunDescription;
use super::existing::{Existing, prepare, refuse_foreign};
use super::files::{files_of, holds_no_results, remove_traces};
use super::hash::{hash_file, hash_json};
use super::lock::RunLock;
use super::names::{CONFIG_FILE, RUN_FILE};
use crate::error::Error;
use pleach_policies::{ARTEFACTS_FILE, is_inside};

/// Hex digits of the configuration hash in the folder's name.
const HASH_DIGITS_IN_NAME: usize = 8;

/// An open run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Whether the folder itself is this run's making.
    is_new: bool,
    /// No other process works in the folder until this is dropped.
    _lock: RunLock,
}

impl RunFolder {
    /// Opens the run of `command` with `config` in `out`, or in `runs/<command>-<hash>-<seed>` if `out` is none, and
    /// writes the configuration.
    ///
    /// # Errors
    /// [`Error::Problem`] where the folder must not be touched, [`Error::Problem`] where a run to resume was made from
    /// another configuration, [`Error::Problem`].
    pub fn open(
        command: &str,
        config: &impl Serialize,
        seed: u64,
        out: Option<&Path>,
        existing: Existing,
    ) -> Result<RunFolder, Error> {
        let (description, text) = described(command, config, seed)?;
        let path = out.map_or_else(|| default_path(&description), Path::to_path_buf);
        refuse_foreign(&path)?;
        let is_new = !path.exists();
        let lock = RunLock::take(&path)?;
        prepare(&path, (&description, &text), existing)?;
        RunFolder::begin((path, is_new), &description, &text, lock)
    }

    /// Opens the run of `command` in `out`, finished or not, to go on with another configuration than it had `before`.
    ///
    /// # Errors
    /// As [`RunFolder::open`]; [`Error::Problem`] where the run there had neither of the two.
    pub fn open_extended<C: Serialize>(
        command: &str,
        (before, config): (&C, &C),
        seed: u64,
        out: &Path,
    ) -> Result<RunFolder, Error> {
        let (description, text) = described(command, config, seed)?;
        refuse_foreign(out)?;
        let lock = RunLock::take(out)?;
        // Where a kill came between this file and the settings, it is extended already.
        let is_extended = RunDescription::read(out)?.is_some_and(|found| found == description);
        let (found, found_text) = if is_extended {
            (description.clone(), text.clone())
        } else {
            described(command, before, seed)?
        };
        prepare(out, (&found, &found_text), Existing::Resume)?;
        RunFolder::begin((out.to_path_buf(), false), &description, &text, lock)
    }

    fn begin(
        (path, is_new): (PathBuf, bool),
        description: &RunDescription,
        text: &str,
        lock: RunLock,
    ) -> Result<RunFolder, Error> {
        atomic_file::write_json(&path.join(RUN_FILE), description)?;
        atomic_file::write(&path.join(CONFIG_FILE), text.as_bytes())?;
        Ok(RunFolder {
            path,
            is_new,
            _lock: lock,
        })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place of the artefact `name` inside the folder.
    ///
    /// # Errors
    /// [`Error::Problem`] where `name` would lead out of the folder.
    pub fn file(&self, name: &str) -> Result<PathBuf, Error> {
        Error::refuse_if(
            name.is_empty() || !is_inside(name),
            "file",
            name,
            "a name inside the run's folder",
            "Leave out `..` and `/`.",
        )?;
        Ok(self.path.join(name))
    }

    /// Writes the artefact `name` whole or not at all.
    ///
    /// # Errors
    /// As [`RunFolder::file`], and [`Error::Problem`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.file(name)?;
        atomic_file::write(&path, bytes)?;
        Ok(path)
    }

    /// Writes the artefact `name` as JSON.
    ///
    /// # Errors
    /// As [`RunFolder::write`].
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<PathBuf, Error> {
        let path = self.file(name)?;
        atomic_file::write_json(&path, value)?;
        Ok(path)
    }

    /// Marks the run as finished: lists every file with its hash, in the order of names, but for the logs of speed.
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be read.
    pub fn finish(self) -> Result<Vec<Artefact>, Error> {
        let files = files_of(&self.path)?;
        let mut artefacts = Vec::with_capacity(files.len());
        for file in files {
            let path = self.path.join(&file);
            let (size_bytes, sha256) = hash_file(&path).map_err(|source| Error::io("read", &path, source))?;
            artefacts.push(Artefact {
                file,
                size_bytes,
                sha256,
            });
        }
        atomic_file::write_json(&self.path.join(ARTEFACTS_FILE), &artefacts)?;
        Ok(artefacts)
    }
}

/// Whether there is a finished run in a folder.
#[must_use]
pub fn is_finished(path: &Path) -> bool {
    path.join(ARTEFACTS_FILE).is_file()
}

/// A command that is refused, or fails, before it has made anything leaves no trace: its settings alone are not a run.
impl Drop for RunFolder {
    fn drop(&mut self) {
        if holds_no_results(&self.path).is_ok_and(|is_empty| is_empty) {
            // Where a file stays, the next command takes the folder over.
            let _ = remove_traces(&self.path, self.is_new);
        }
    }
}

/// What a run is, and its configuration as TOML.
fn described(command: &str, config: &impl Serialize, seed: u64) -> Result<(RunDescription, String), Error> {
    let no_form = |error: String| Error::Failed(format!("the configuration cannot be written: {error}"));
    let json = serde_json::to_value(config).map_err(|error| no_form(error.to_string()))?;
    let text = toml::to_string_pretty(config).map_err(|error| no_form(error.to_string()))?;
    let description = RunDescription {
        schema: 1,
        command: command.to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed,
        config_hash: hash_json(&json),
    };
    Ok((description, text))
}

/// `runs/<command>-<first digits of the hash>-<seed>`.
pub(super) fn default_path(description: &RunDescription) -> PathBuf {
    let short = &description.config_hash[..HASH_DIGITS_IN_NAME];
    Path::new("runs").join(format!("{}-{short}-{}", description.command, description.seed))
}
