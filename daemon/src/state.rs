//! The daemon's folder: a lock, the decision log, the status, the memory, what was learned of run times, what is remembered of drift.
//!
//! Nothing in it is needed to go on: jobs, holds and decisions are Slurm's. So a full disk costs the log, not the scheduling.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::EstimateSettings;
use crate::drift::Remembered;
use crate::error::Error;
use crate::history::History;
use crate::memory::Memory;
use crate::policy::Loaded;
use crate::record::RoundRecord;

/// Largest memory that is read: what ten million jobs could leave.
const MEMORY_MAX: u64 = 4 << 30;

/// Largest history that is read: 10,000 users of 50 run times for each of 16 gang sizes.
const HISTORY_MAX: u64 = 256 << 20;

/// Largest memory of drift that is read: a window over the largest tree.
const DRIFT_MAX: u64 = 1 << 20;

/// How the last round went, for `pleach-scheduler status` and for watchdogs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Status {
    /// When it was written, Unix time, s.
    pub at_s: i64,
    /// Process id of the daemon.
    pub pid: u32,
    /// Whether nothing is carried out.
    pub is_shadow: bool,
    /// The partition.
    pub partition: String,
    /// Name of the policy.
    pub policy: String,
    /// What an operator should know of it.
    pub warnings: Vec<String>,
    /// Rounds since the daemon began.
    pub num_rounds: u64,
    /// Rounds that failed.
    pub num_failed: u64,
    /// Rounds that the fallback answered.
    pub num_fallbacks: u64,
    /// Starts that were sent; in shadow mode, that were decided.
    pub num_starts: u64,
    /// Jobs that wait for the daemon.
    pub num_waiting: usize,
    /// Jobs that run or were let go.
    pub num_placed: usize,
    /// Jobs that are left to Slurm.
    pub num_foreign: usize,
    /// Lines that the log could not take.
    pub num_lines_lost: u64,
    /// The last error; empty where there was none.
    pub last_error: String,
    /// Stability index of the last decisions; none until there is one, and for what is no sealed tree.
    pub drift_psi: Option<f64>,
    /// Time for observing in the last round, s.
    pub observe_s: f64,
    /// Time for deciding in the last round, s.
    pub decide_s: f64,
    /// Time for carrying out in the last round, s.
    pub apply_s: f64,
}

/// The folder, for the one daemon that may write to it.
#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    bytes_max: u64,
    log: Option<File>,
    _lock: File,
}

impl State {
    /// Takes the folder for this process.
    ///
    /// # Errors
    /// A folder that cannot be made or locked; another process that has it.
    pub fn take(folder: &Path, bytes_max: u64) -> Result<State, Error> {
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let path = folder.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(Error::file(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { path }),
            Err(TryLockError::Error(source)) => return Err(Error::File { path, source }),
        }
        Ok(State {
            folder: folder.to_owned(),
            bytes_max,
            log: None,
            _lock: lock,
        })
    }

    /// Appends a round to the log, whole; a log that has grown too long is put aside first.
    ///
    /// # Errors
    /// What cannot be written; the line is lost and the log ends at the line before.
    pub fn append(&mut self, record: &RoundRecord) -> Result<(), Error> {
        let path = log_path(&self.folder);
        let mut line = serde_json::to_vec(record).map_err(|error| Error::Text {
            path: path.clone(),
            line: 0,
            reason: error.to_string(),
        })?;
        line.push(b'\n');
        let result = self.write_line(&path, &line);
        if result.is_err() {
            self.log = None;
        }
        result.map_err(Error::file(path))
    }

    fn write_line(&mut self, path: &Path, line: &[u8]) -> std::io::Result<()> {
        let mut file = match self.log.take() {
            Some(file) => file,
            None => open_log(path)?,
        };
        let before = file.metadata()?.len();
        if before > 0 && before + line.len() as u64 > self.bytes_max {
            std::fs::rename(path, path.with_extension("jsonl.1"))?;
            file = open_log(path)?;
        }
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(line).and_then(|()| file.flush()) {
            // A part of a line would spoil the next one.
            let _ = file.set_len(before);
            return Err(error);
        }
        self.log = Some(file);
        Ok(())
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

    /// Writes what is remembered of drift.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write_drift(&self, remembered: &Remembered) -> Result<(), Error> {
        self.replace("drift.json", &serde_json::to_vec(remembered).unwrap_or_default())
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

    /// Reads what was remembered of drift; nothing where there is no such file or it cannot be understood, with the reason.
    #[must_use]
    pub fn read_drift(&self) -> (Option<Remembered>, Option<String>) {
        let path = self.folder.join("drift.json");
        let Ok(file) = File::open(&path) else {
            return (None, None);
        };
        match serde_json::from_reader(BufReader::new(file.take(DRIFT_MAX))) {
            Ok(remembered) => (Some(remembered), None),
            Err(error) => (None, Some(format!("{}: {error}; begins anew", path.display()))),
        }
    }

    /// Writes the time of the last round, which the generated `job_submit.lua` reads: without a recent one it holds nothing.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write_heartbeat(&self, now_s: i64) -> Result<(), Error> {
        self.replace("heartbeat", now_s.to_string().as_bytes())
    }

    /// Reads what was remembered; nothing where there is no such file or it cannot be understood, with the reason.
    #[must_use]
    pub fn read_memory(&self) -> (Memory, Option<String>) {
        let path = self.folder.join("memory.json");
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

    /// Replaces a file as a whole.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.folder.join(name);
        let part = self.folder.join(format!("{name}.part"));
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            std::fs::rename(&part, &path)
        };
        write().map_err(Error::file(&path))?;
        // Makes the rename durable where folders can be synced; where not, the file is whole all the same.
        if let Ok(folder) = File::open(&self.folder) {
            let _ = folder.sync_all();
        }
        Ok(())
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

/// The decision log of a folder.
#[must_use]
pub fn log_path(folder: &Path) -> PathBuf {
    folder.join("decisions.jsonl")
}

/// Opens a log to go on with it, behind its last whole line.
fn open_log(path: &Path) -> std::io::Result<File> {
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(path)?;
    let mut end = file.metadata()?.len();
    let mut byte = [0];
    while end > 0 {
        file.seek(SeekFrom::Start(end - 1))?;
        file.read_exact(&mut byte)?;
        if byte == *b"\n" {
            break;
        }
        end -= 1;
    }
    file.set_len(end)?;
    Ok(file)
}

/// The status of a folder.
///
/// # Errors
/// A file that cannot be read or understood.
pub fn read_status(folder: &Path) -> Result<Status, Error> {
    let path = folder.join("status.json");
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    serde_json::from_str(&text).map_err(|error| Error::Text {
        path,
        line: 0,
        reason: error.to_string(),
    })
}

/// The last rounds of a log that decided about a job, newest last, at most `most`.
///
/// # Errors
/// As [`crate::source::replay::Replay`].
pub fn rounds_of(
    folder: &Path,
    job: pleach_scheduler::ExternalId,
    most: usize,
) -> Result<Vec<RoundRecord>, Error> {
    let mut found = Vec::new();
    let newest = log_path(folder);
    let word = format!("\"{job}\"");
    for path in [newest.with_extension("jsonl.1"), newest] {
        let Ok(file) = File::open(&path) else { continue };
        for (row, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(Error::file(&path))?;
            if !line.contains(&word) {
                continue;
            }
            let record: RoundRecord = match serde_json::from_str(&line) {
                Ok(record) => record,
                Err(error) if error.is_eof() => break,
                Err(error) => {
                    return Err(Error::Text {
                        path,
                        line: row + 1,
                        reason: error.to_string(),
                    });
                }
            };
            if record.decisions.iter().any(|planned| planned.job() == job) {
                found.push(record);
                if found.len() > most {
                    found.remove(0);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Snapshot, VERSION};
    use crate::source::replay::Replay;

    fn record(round: u64) -> RoundRecord {
        RoundRecord {
            round,
            is_shadow: true,
            policy: "fifo".into(),
            fallback: None,
            aside: None,
            snapshot: Snapshot {
                version: VERSION,
                taken_s: 5,
                nodes: Vec::new(),
                jobs: Vec::new(),
            },
            memory: Memory::default(),
            turn: None,
            decisions: Vec::new(),
            observe_s: 0.1,
            decide_s: 0.2,
            apply_s: 0.3,
        }
    }

    #[test]
    fn a_log_is_bounded_and_goes_on_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = State::take(folder.path(), 65_536).unwrap();
        assert!(matches!(
            State::take(folder.path(), 65_536),
            Err(Error::Busy { .. })
        ));
        for round in 0..1000 {
            state.append(&record(round)).unwrap();
        }
        let path = log_path(folder.path());
        let bytes = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert!(bytes(&path) <= 65_536 && bytes(&path.with_extension("jsonl.1")) <= 65_536);
        drop(state);
        // A daemon that was killed in the middle of a line.
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"round\":9")
            .unwrap();
        let mut state = State::take(folder.path(), 65_536).unwrap();
        state.append(&record(1000)).unwrap();
        let rounds: Vec<u64> = Replay::open(&path)
            .unwrap()
            .map(|record| record.unwrap().round)
            .collect();
        assert_eq!(rounds.last(), Some(&1000));
        assert!(rounds.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }

    #[test]
    fn memory_that_cannot_be_understood_is_begun_anew_and_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::take(folder.path(), 65_536).unwrap();
        assert_eq!(state.read_memory(), (Memory::default(), None));
        state.write_memory(&Memory::default()).unwrap();
        assert_eq!(state.read_memory(), (Memory::default(), None));
        std::fs::write(folder.path().join("memory.json"), "{\"7\":").unwrap();
        assert!(state.read_memory().1.unwrap().contains("memory.json"));
    }

    #[test]
    fn a_history_that_cannot_be_understood_is_begun_anew_and_said_so() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::take(folder.path(), 65_536).unwrap();
        let settings = EstimateSettings::default();
        let nothing = History::new(&settings);
        assert_eq!(read_history(folder.path(), &settings), (nothing.clone(), None));
        state.write_history(&nothing).unwrap();
        assert_eq!(read_history(folder.path(), &settings), (nothing.clone(), None));
        let path = folder.path().join("history.json");
        let text = std::fs::read_to_string(&path).unwrap();
        for (other, word) in [
            (
                text.replace("\"version\":1", "\"version\":9"),
                "version = 9: allowed is 1",
            ),
            (text[..text.len() / 2].to_owned(), "EOF"),
        ] {
            std::fs::write(&path, other).unwrap();
            let (history, complaint) = read_history(folder.path(), &settings);
            assert!(history == nothing && complaint.unwrap().contains(word), "{word}");
        }
    }
}
