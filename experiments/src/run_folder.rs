//! One folder for each run: its configuration, its artefacts, and a list of them once it is finished.
//!
//! ```text
//! runs/evaluate-3f2a91c0-0/
//!   run.json         command, version, seed, hash of the configuration
//!   config.toml      the whole configuration, defaults included
//!   ...              what the command makes
//!   artefacts.json   written last: names, sizes and hashes; its presence means finished
//!   lock             empty; locked while a process works here, and not listed
//! ```
//! No file but the two logs of speed that training writes (`timing.jsonl`, `tensorboard/`) holds a clock reading, a host
//! name or a path, and those two are not listed, so two runs of the same seed, configuration and version can be
//! compared byte by byte. What is refused: overwriting a finished run, and touching a folder that is not a run.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::differences;
use crate::error::Error;
use crate::hash::{hash_bytes, hash_json};
use crate::run_lock::{LOCK_FILE, RunLock};

const RUN_FILE: &str = "run.json";
/// The whole configuration.
pub const CONFIG_FILE: &str = "config.toml";
/// What training writes to be given back with `--config`.
pub const SETTINGS_FILE: &str = "settings.toml";
const ARTEFACTS_FILE: &str = "artefacts.json";
/// What training writes with the time of day in it.
const CLOCKED: [&str; 2] = ["timing.jsonl", "tensorboard"];
/// What training goes on from or adds to; also there when a run is broken off, before anything is listed.
const TRAINING_STATE: [&str; 7] = [
    "checkpoints",
    "network.ckpt",
    "validation.json",
    "metrics.jsonl",
    "histograms.jsonl",
    "timing.jsonl",
    "tensorboard",
];
/// Bound on the two small files that describe a run.
const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;
/// Hex digits of the configuration hash in the folder's name.
const HASH_DIGITS_IN_NAME: usize = 8;

/// What to do with a folder that holds a run already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse if it is finished or of another configuration; go on in a broken-off one.
    Refuse,
    /// Go on in it, finished or not; its configuration must be the same.
    Resume,
    /// Replace it.
    Replace,
    /// Go on in a broken-off one of the same configuration, replace any other.
    Renew,
}

impl Existing {
    /// From the flags `--force` and `--resume`; clap keeps them from being given together.
    #[must_use]
    pub fn from_flags(force: bool, resume: bool) -> Existing {
        match (force, resume) {
            (true, _) => Existing::Replace,
            (false, true) => Existing::Resume,
            (false, false) => Existing::Refuse,
        }
    }
}

/// What a run is: `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDescription {
    /// Version of this file's layout.
    pub schema: u32,
    /// The command: `evaluate`, `train`, ...
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Root seed.
    pub seed: u64,
    /// Hex SHA-256 of the configuration's canonical JSON.
    pub config_hash: String,
}

impl RunDescription {
    /// Of the run in a folder; none where there is no run.
    ///
    /// # Errors
    /// A `run.json` that cannot be read.
    pub fn read(folder: &Path) -> Result<Option<RunDescription>, Error> {
        let file = folder.join(RUN_FILE);
        if !file.is_file() {
            return Ok(None);
        }
        atomic_file::read_json(&file, DESCRIPTION_BYTES_MAX).map(Some)
    }
}

/// One line of `artefacts.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Artefact {
    /// Path inside the run's folder, with `/`.
    pub file: String,
    /// Size.
    pub size_bytes: u64,
    /// Hex SHA-256 of its bytes.
    pub sha256: String,
}

/// An open run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    description: RunDescription,
    /// Nobody else works in the folder until this is dropped.
    _lock: RunLock,
}

impl RunFolder {
    /// Opens the run of `command` with `config` in `out`, or in `runs/<command>-<hash>-<seed>` if `out` is none, and
    /// writes the configuration.
    ///
    /// # Errors
    /// [`Error::Config`] where the folder must not be touched, [`Error::Contract`] where a run to resume was made from
    /// another configuration, [`Error::Io`].
    pub fn open(
        command: &str,
        config: &impl Serialize,
        seed: u64,
        out: Option<&Path>,
        existing: Existing,
    ) -> Result<RunFolder, Error> {
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
        let path = out.map_or_else(|| default_path(&description), Path::to_path_buf);
        refuse_foreign(&path)?;
        let lock = RunLock::take(&path)?;
        settle(&path, (&description, &text), existing)?;
        atomic_file::write_json(&path.join(RUN_FILE), &description)?;
        atomic_file::write(&path.join(CONFIG_FILE), text.as_bytes())?;
        Ok(RunFolder {
            path,
            description,
            _lock: lock,
        })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run is.
    #[must_use]
    pub fn description(&self) -> &RunDescription {
        &self.description
    }

    /// The place of the artefact `name` inside the folder.
    ///
    /// # Errors
    /// [`Error::Config`] where `name` would lead out of the folder.
    pub fn file(&self, name: &str) -> Result<PathBuf, Error> {
        let inside = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !inside {
            return Err(Error::config(
                "file",
                name,
                "a name inside the run's folder",
                "Leave out `..` and `/`.",
            ));
        }
        Ok(self.path.join(name))
    }

    /// Writes the artefact `name` whole or not at all.
    ///
    /// # Errors
    /// As [`RunFolder::file`], and [`Error::Io`].
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
    /// [`Error::Io`] where a file cannot be read.
    pub fn finish(self) -> Result<Vec<Artefact>, Error> {
        let mut files = Vec::new();
        collect_files(&self.path, &self.path, &mut files)?;
        files.sort();
        let mut artefacts = Vec::with_capacity(files.len());
        for file in files {
            let path = self.path.join(&file);
            let bytes = fs::read(&path).map_err(|source| Error::io("read", &path, source))?;
            let sha256 = hash_bytes(&bytes);
            artefacts.push(Artefact {
                file,
                size_bytes: bytes.len() as u64,
                sha256,
            });
        }
        atomic_file::write_json(&self.path.join(ARTEFACTS_FILE), &artefacts)?;
        Ok(artefacts)
    }
}

/// `runs/<command>-<first digits of the hash>-<seed>`.
fn default_path(description: &RunDescription) -> PathBuf {
    let short = &description.config_hash[..HASH_DIGITS_IN_NAME];
    Path::new("runs").join(format!("{}-{short}-{}", description.command, description.seed))
}

/// Refuses a place that holds anything but a run of ours, before a file is put there.
fn refuse_foreign(path: &Path) -> Result<(), Error> {
    let shown = path.display();
    if path.exists() && !path.is_dir() {
        return Err(Error::config(
            "out",
            shown,
            "a folder",
            "A file has this name; give another --out.",
        ));
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::io("read", path, source)),
    };
    let mut empty = true;
    for entry in entries {
        let name = entry
            .map_err(|source| Error::io("read", path, source))?
            .file_name();
        empty &= atomic_file::is_temporary(&name) || name == LOCK_FILE;
    }
    if empty || path.join(RUN_FILE).is_file() {
        return Ok(());
    }
    let hint = "It holds files that are not a run of ours, and they stay untouched.";
    Err(Error::config(
        "out",
        shown,
        "a new or empty folder, or an earlier run",
        hint,
    ))
}

/// Makes `path`, which is ours and locked, ready for `wanted` with the configuration `text`, or says why not.
fn settle(path: &Path, (wanted, text): (&RunDescription, &str), existing: Existing) -> Result<(), Error> {
    let shown = path.display();
    remove_temporaries(path).map_err(|source| Error::io("read", path, source))?;
    if !path.join(RUN_FILE).is_file() {
        return Ok(());
    }
    let finished = path.join(ARTEFACTS_FILE).is_file();
    if existing == Existing::Replace || (existing == Existing::Renew && finished) {
        return clear(path);
    }
    let found: RunDescription = atomic_file::read_json(&path.join(RUN_FILE), DESCRIPTION_BYTES_MAX)?;
    if existing == Existing::Renew && &found != wanted {
        return clear(path);
    }
    if &found != wanted {
        return Err(Error::Contract {
            what: format!("the run in {shown}"),
            expected: describe(wanted),
            found: describe(&found),
            hint: format!(
                "{}Give another --out, or --force to replace it.",
                mend(path, wanted, text, &found)
            ),
        });
    }
    if finished && existing == Existing::Refuse {
        let hint = "It is finished: --resume goes on in it, --force replaces it.";
        return Err(Error::config(
            "out",
            shown,
            "a folder without a finished run",
            hint,
        ));
    }
    remove_if_there(&path.join(ARTEFACTS_FILE))
}

/// What differs from the run that is there, key by key, and how to have the same; empty where that is not known.
fn mend(path: &Path, wanted: &RunDescription, text: &str, found: &RunDescription) -> String {
    let is_same = found.config_hash == wanted.config_hash;
    if found.command != wanted.command || (is_same && found.seed == wanted.seed) {
        return String::new();
    }
    let there = atomic_file::read_text(&path.join(CONFIG_FILE), DESCRIPTION_BYTES_MAX);
    let tables = there.map(|there| (toml::from_str(text), toml::from_str(&there)));
    let differences = match &tables {
        Ok((Ok(here), Ok(there))) => differences::in_words(here, there),
        _ => String::new(),
    };
    let mut words = String::new();
    if !differences.is_empty() {
        words = format!("Different here: {differences}. ");
    }
    let settings = path.join(SETTINGS_FILE);
    if settings.is_file() {
        let (settings, seed) = (settings.display(), found.seed);
        words.push_str(&format!("The same as there: --config {settings} --seed {seed}. "));
    }
    words
}

/// Removes what writers that were killed left in `folder`. A run that was killed at its first file is thereby as good as
/// none.
fn remove_temporaries(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if atomic_file::is_temporary(&entry.file_name()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn describe(run: &RunDescription) -> String {
    format!(
        "{} {} seed {} config {}",
        run.command, run.version, run.seed, run.config_hash
    )
}

/// Removes what the earlier run listed as its own, the list first so that a broken-off removal is not a finished run, and
/// what training goes on from, listed or not: a new run must not go on from an old one's state.
fn clear(path: &Path) -> Result<(), Error> {
    let list = path.join(ARTEFACTS_FILE);
    let artefacts: Vec<Artefact> = if list.is_file() {
        atomic_file::read_json(&list, DESCRIPTION_BYTES_MAX)?
    } else {
        Vec::new()
    };
    remove_if_there(&list)?;
    for artefact in &artefacts {
        let inside = Path::new(&artefact.file)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if inside && artefact.file != RUN_FILE {
            remove_if_there(&path.join(&artefact.file))?;
        }
    }
    for name in TRAINING_STATE {
        let place = path.join(name);
        if place.is_dir() {
            fs::remove_dir_all(&place).map_err(|source| Error::io("remove", &place, source))?;
        } else {
            remove_if_there(&place)?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::io("remove", path, source)),
    }
}

/// Names of all files under `folder`, relative to `root`, without temporary ones. Links are not followed.
fn collect_files(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), Error> {
    let failed = |source| Error::io("read", folder, source);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if CLOCKED.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            collect_files(root, &path, files)?;
        } else if kind.is_file() {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<_> = relative
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            let name = parts.join("/");
            if !name.ends_with(atomic_file::TEMPORARY_SUFFIX) && name != ARTEFACTS_FILE && name != LOCK_FILE {
                files.push(name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn config(load: f64) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([("load", load)])
    }

    fn open(out: &Path, load: f64, existing: Existing) -> Result<RunFolder, Error> {
        RunFolder::open("evaluate", &config(load), 7, Some(out), existing)
    }

    #[test]
    fn a_replaced_run_leaves_nothing_to_go_on_from_and_a_renewed_one_does_if_it_was_broken_off() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("r");
        let open = |load, existing| RunFolder::open("train", &config(load), 0, Some(&out), existing).unwrap();
        let state = out.join("checkpoints/3.ckpt");
        let put = || {
            fs::create_dir_all(out.join("checkpoints")).unwrap();
            fs::write(&state, b"x").unwrap();
        };
        open(0.5, Existing::Renew);
        put();
        open(0.5, Existing::Renew);
        assert!(state.exists(), "broken off, same configuration");
        open(0.6, Existing::Renew);
        assert!(!state.exists(), "broken off, another configuration");
        put();
        open(0.6, Existing::Replace);
        assert!(!state.exists(), "replaced");
        put();
        open(0.6, Existing::Renew).finish().unwrap();
        open(0.6, Existing::Renew);
        assert!(!state.exists(), "finished");
    }

    #[test]
    fn the_default_folder_is_named_by_command_config_and_seed() {
        let description = RunDescription {
            schema: 1,
            command: "train".into(),
            version: "0.1.0".into(),
            seed: 3,
            config_hash: hash_json(&serde_json::json!({})),
        };
        // SHA-256 of "{}" begins with 44136fa3.
        assert_eq!(default_path(&description), Path::new("runs/train-44136fa3-3"));
    }

    #[test]
    fn a_finished_run_is_refused_resumed_or_replaced() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("run");
        let run = open(&out, 0.8, Existing::Refuse).unwrap();
        run.write("old.csv", b"1").unwrap();
        let artefacts = run.finish().unwrap();
        let names: Vec<_> = artefacts.iter().map(|artefact| artefact.file.as_str()).collect();
        assert_eq!(names, ["config.toml", "old.csv", "run.json"]);

        let refused = open(&out, 0.8, Existing::Refuse).unwrap_err().to_string();
        assert!(refused.contains("--force"), "{refused}");
        open(&out, 0.8, Existing::Resume).unwrap().finish().unwrap();
        assert!(out.join("old.csv").exists());
        open(&out, 0.9, Existing::Replace).unwrap();
        assert!(!out.join("old.csv").exists());
        assert!(!out.join(ARTEFACTS_FILE).exists());
    }

    #[test]
    fn a_run_of_another_configuration_is_not_resumed() {
        let root = tempfile::tempdir().unwrap();
        open(root.path(), 0.8, Existing::Refuse).unwrap();
        assert!(matches!(
            open(root.path(), 0.9, Existing::Resume),
            Err(Error::Contract { .. })
        ));
        assert!(matches!(
            open(root.path(), 0.9, Existing::Refuse),
            Err(Error::Contract { .. })
        ));
        // Broken off, and of the same configuration: goes on.
        open(root.path(), 0.8, Existing::Refuse).unwrap();
    }

    #[test]
    fn what_killed_writers_left_is_cleared_away_and_is_not_a_run() {
        let root = tempfile::tempdir().unwrap();
        let left = |name: &str| {
            let path = root.path().join(name);
            fs::write(&path, "{").unwrap();
            path
        };
        // Killed before the first file had its name.
        let first = left(".run.json.4711.0.tmp");
        open(root.path(), 0.8, Existing::Refuse).unwrap();
        let later = left(".validation.json.4711.12.tmp");
        let own = left("notes.tmp");
        open(root.path(), 0.8, Existing::Resume).unwrap();
        assert!(!first.exists() && !later.exists() && own.exists());
    }

    #[test]
    fn a_folder_with_the_users_own_files_stays_untouched_even_with_force() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "mine").unwrap();
        for existing in [Existing::Refuse, Existing::Resume, Existing::Replace] {
            assert!(matches!(open(root.path(), 0.8, existing), Err(Error::Config(_))));
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn artefacts_cannot_be_written_or_removed_outside_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("run");
        fs::write(root.path().join("precious"), "x").unwrap();
        let run = open(&out, 0.8, Existing::Refuse).unwrap();
        assert!(run.write("../precious", b"y").is_err());
        assert!(run.write("/etc/precious", b"y").is_err());
        let hostile = vec![Artefact {
            file: "../precious".into(),
            size_bytes: 1,
            sha256: String::new(),
        }];
        atomic_file::write_json(&out.join(ARTEFACTS_FILE), &hostile).unwrap();
        drop(run);
        open(&out, 0.8, Existing::Replace).unwrap();
        assert_eq!(fs::read(root.path().join("precious")).unwrap(), b"x");
    }

    #[test]
    fn two_runs_of_one_configuration_are_equal_byte_by_byte() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            open(&root.path().join(name), 0.8, Existing::Refuse)
                .unwrap()
                .finish()
                .unwrap();
        }
        for file in [RUN_FILE, CONFIG_FILE, ARTEFACTS_FILE] {
            let read = |name: &str| fs::read(root.path().join(name).join(file)).unwrap();
            assert_eq!(read("a"), read("b"));
        }
    }
}
