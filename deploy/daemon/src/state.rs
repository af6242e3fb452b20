//! The daemon's folder: a lock, the decision log, the status, the memory, what was learned of run times, what is
//! remembered of drift and of waits.
//!
//! Nothing in it is needed to go on: jobs, holds and decisions are Slurm's. So a full disk costs the log, not the scheduling.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::{EstimateSettings, LogSettings};
use crate::error::Error;
use crate::files;
use crate::history::History;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::policy::Loaded;
use crate::record::RoundRecord;

pub use crate::journal::{log_path, rounds_of};
pub use crate::status::{Status, read_status};

/// Largest memory that is read: what ten million jobs could leave.
const MEMORY_MAX: u64 = 4 << 30;

/// Largest history that is read: 10,000 users of 50 run times for each of 16 gang sizes.
const HISTORY_MAX: u64 = 256 << 20;

/// What is remembered of drift, and of the waits that are held against a promise.
pub const DRIFT: &str = "drift.json";
/// The same of waits.
pub const WAITS: &str = "waits.json";

/// Largest of the two that is read: ten million jobs that are blocked.
const WATCH_MAX: u64 = 1 << 30;

/// How long the lock of a daemon that was killed may outlive it: a command that it was just starting has its files until it runs.
/// *Ours*.
const LAST_BREATH: Duration = Duration::from_secs(1);

/// Most bytes of a lock that are read: a program and a process.
const HOLDER_MAX: u64 = 300;

/// Longest time for which a file may be behind in when jobs were last seen, s. *Ours*: a third of the time between two looks up to
/// which an end that was not reported is taken to lie between them.
const LOOKS_S: i64 = 20;

/// Whether what was written at one Unix time, s, says well enough at another when jobs were last seen.
pub(crate) fn is_recent(written_s: i64, now_s: i64) -> bool {
    (written_s..written_s.saturating_add(LOOKS_S)).contains(&now_s)
}

/// The folder, for the one daemon that may write to it.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    journal: Journal,
    _lock: File,
}

impl State {
    /// Takes the folder for this process.
    ///
    /// # Errors
    /// A folder that cannot be made or locked; another process that has it.
    pub fn take(folder: &Path, log: LogSettings) -> Result<State, Error> {
        State::take_within(folder, log, LAST_BREATH)
    }

    /// The same from a process that lets go of it within `patience`.
    fn take_within(folder: &Path, log: LogSettings, patience: Duration) -> Result<State, Error> {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let path = folder.join("lock");
        let mut lock = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)
            .map_err(Error::file(&path))?;
        let end = Instant::now() + patience;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < end => {
                    thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(lock);
                    return Err(Error::Busy { path, holder });
                }
                Err(TryLockError::Error(source)) => return Err(Error::File { path, source }),
            }
        }
        // For a process that finds the lock taken; a full disk is no reason to drive nothing.
        let _ = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{} (process {})", program(), std::process::id()));
        Ok(State {
            folder: folder.to_owned(),
            journal: Journal::new(folder, log),
            _lock: lock,
        })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the folder to hand jobs back, also from a daemon that is just ending: it is given `patience` for that. None with
    /// `is_forced`, where a daemon works there and goes on, and where something is wrong with our own folder.
    ///
    /// # Errors
    /// [`Error::Driven`] where a daemon works there, without `is_forced`.
    pub fn take_to_hand_back(
        folder: &Path,
        is_forced: bool,
        patience: Duration,
    ) -> Result<Option<State>, Error> {
        let patience = if is_forced { Duration::ZERO } else { patience };
        match State::take_within(folder, LogSettings::default(), patience) {
            Ok(state) => Ok(Some(state)),
            Err(Error::Busy { path, holder }) if !is_forced => Err(Error::Driven { path, holder }),
            Err(_) => Ok(None),
        }
    }

    /// Appends a round to the log, whole; a file that is full is put aside first.
    ///
    /// # Errors
    /// What cannot be written; the line is lost and the log ends at the line before.
    pub fn append(&mut self, record: RoundRecord) -> Result<(), Error> {
        self.journal.append(record)
    }

    /// Writes the status.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write_status(&self, status: &Status) -> Result<(), Error> {
        self.replace("status.json", &serde_json::to_vec(status).unwrap_or_default())
    }

    /// Writes what is remembered of jobs.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write_memory(&self, memory: &Memory) -> Result<(), Error> {
        self.replace("memory.json", &serde_json::to_vec(memory).unwrap_or_default())
    }

    /// Writes what was learned of run times.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write_history(&self, history: &History) -> Result<(), Error> {
        self.replace("history.json", &serde_json::to_vec(history).unwrap_or_default())
    }

    /// Writes what a watch remembers, [`DRIFT`] or [`WAITS`].
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write_watch(&self, name: &str, remembered: &impl Serialize) -> Result<(), Error> {
        self.replace(name, &serde_json::to_vec(remembered).unwrap_or_default())
    }

    /// Writes what a dealer remembers; nothing of other policies.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn note(&self, loaded: &Loaded) -> Result<(), Error> {
        let Some(dealing) = loaded.dealing() else {
            return Ok(());
        };
        let text = serde_json::to_vec(dealing.memory()).unwrap_or_default();
        self.replace("deals.json", &text)
    }

    /// Lets a dealer go on from what was remembered; a file that cannot be understood is left, with the reason.
    pub fn remind(&self, loaded: &mut Loaded) -> Option<String> {
        let dealing = loaded.dealing_mut()?;
        let path = self.folder.join("deals.json");
        let file = File::open(&path).ok()?;
        match serde_json::from_reader(BufReader::new(file.take(MEMORY_MAX))) {
            Ok(memory) => {
                dealing.remember(memory);
                None
            }
            Err(error) => Some(format!("{}: {error}; begins anew", path.display())),
        }
    }

    /// Reads what a watch remembered, [`DRIFT`] or [`WAITS`]; nothing where there is no such file or it cannot be understood, with the
    /// reason.
    #[must_use]
    pub fn read_watch<T: DeserializeOwned>(&self, name: &str) -> (Option<T>, Option<String>) {
        let path = self.folder.join(name);
        let Ok(file) = File::open(&path) else {
            return (None, None);
        };
        match serde_json::from_reader(BufReader::new(file.take(WATCH_MAX))) {
            Ok(remembered) => (Some(remembered), None),
            Err(error) => (None, Some(format!("{}: {error}; begins anew", path.display()))),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        files::replace(&self.folder, name, bytes)
    }
}

/// What was remembered of jobs in a folder; nothing where there is no such file or it cannot be understood, with the reason.
#[must_use]
pub fn read_memory(folder: &Path) -> (Memory, Option<String>) {
    let path = folder.join("memory.json");
    let Ok(file) = File::open(&path) else {
        return (Memory::default(), None);
    };
    match serde_json::from_reader(BufReader::new(file.take(MEMORY_MAX))) {
        Ok(memory) => (memory, None),
        Err(error) => (
            Memory::default(),
            Some(format!("{}: {error}; begins anew", path.display())),
        ),
    }
}

/// The name of the running program: two of them work with such folders.
fn program() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(Path::file_name);
    name.map_or("another program".into(), |name| {
        name.to_string_lossy().into_owned()
    })
}

/// What has a lock, as it wrote into it.
fn holder(lock: File) -> String {
    let mut bytes = Vec::new();
    let _ = lock.take(HOLDER_MAX).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().next().unwrap_or_default().trim() {
        "" => "another process".into(),
        line => line.chars().filter(|letter| !letter.is_control()).collect(),
    }
}

/// What was learned of run times in a folder, within the bounds of the settings; nothing yet where there is no such file or it
/// cannot be understood, with the reason.
#[must_use]
pub fn read_history(folder: &Path, settings: &EstimateSettings) -> (History, Option<String>) {
    let path = folder.join("history.json");
    let Ok(file) = File::open(&path) else {
        return (History::new(settings), None);
    };
    let mut text = Vec::new();
    let read = file.take(HISTORY_MAX).read_to_end(&mut text);
    let read = read.map_err(|error| error.to_string());
    match read.and_then(|_| History::read(&text, settings)) {
        Ok(history) => (history, None),
        Err(reason) => {
            let complaint = format!("{}: {reason}; begins anew", path.display());
            (History::new(settings), Some(complaint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_ends_is_waited_for_before_jobs_are_handed_back_and_one_that_works_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::take(folder.path(), LogSettings::default()).unwrap();
        let own = format!("{} (process {})", program(), std::process::id());
        let refused = State::take(folder.path(), LogSettings::default()).unwrap_err();
        assert!(
            matches!(refused, Error::Busy { .. }) && refused.to_string().contains(&own),
            "{refused}"
        );
        let take =
            |is_forced, ms| State::take_to_hand_back(folder.path(), is_forced, Duration::from_millis(ms));
        let said = take(false, 100).unwrap_err().to_string();
        assert!(said.contains("--force") && said.contains(&own), "{said}");
        assert!(take(true, 0).unwrap().is_none());
        let ends = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            drop(state);
        });
        assert!(take(false, 10_000).unwrap().is_some());
        ends.join().unwrap();
        // So is one that was killed a moment ago, by the process that takes its place.
        let killed = State::take(folder.path(), LogSettings::default()).unwrap();
        let ends = thread::spawn(move || {
            thread::sleep(LAST_BREATH / 5);
            drop(killed);
        });
        assert!(State::take(folder.path(), LogSettings::default()).is_ok());
        ends.join().unwrap();
    }

    #[test]
    fn memory_that_cannot_be_understood_is_begun_anew_and_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::take(folder.path(), LogSettings::default()).unwrap();
        assert_eq!(read_memory(folder.path()), (Memory::default(), None));
        state.write_memory(&Memory::default()).unwrap();
        assert_eq!(read_memory(folder.path()), (Memory::default(), None));
        std::fs::write(folder.path().join("memory.json"), "{\"7\":").unwrap();
        assert!(read_memory(folder.path()).1.unwrap().contains("memory.json"));
    }

    #[test]
    fn a_history_that_cannot_be_understood_is_begun_anew_and_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::take(folder.path(), LogSettings::default()).unwrap();
        let settings = EstimateSettings::default();
        let nothing = History::new(&settings);
        assert_eq!(read_history(folder.path(), &settings), (nothing.clone(), None));
        state.write_history(&nothing).unwrap();
        assert_eq!(read_history(folder.path(), &settings), (nothing.clone(), None));
        let path = folder.path().join("history.json");
        let text = std::fs::read_to_string(&path).unwrap();
        for (other, word) in [
            (
                text.replace("\"version\":2", "\"version\":9"),
                "version = 9: allowed is 2",
            ),
            (text[..text.len() / 2].to_owned(), "EOF"),
        ] {
            std::fs::write(&path, other).unwrap();
            let (history, complaint) = read_history(folder.path(), &settings);
            assert!(history == nothing && complaint.unwrap().contains(word), "{word}");
        }
    }
}
