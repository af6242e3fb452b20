//! The log that lasts: what is written is read again to the bit, wherever it was cut short; it is bounded by size and age, and no
//! file costs more than its bound, whatever is in it.

mod churn;
mod cut;
#[cfg(unix)]
mod hostile;
mod kept;
mod week;

use std::path::{Path, PathBuf};

use pleach_daemon::config::LogSettings;
use pleach_daemon::record::RoundRecord;
use pleach_daemon::replay::Replay;
use pleach_daemon::state::State;

/// Files of 16 KiB, and many of them.
const SMALL: LogSettings = LogSettings {
    bytes_max: 1 << 16,
    days: 3660,
};

/// As many bytes as they like, in files that are never full.
const LARGE: LogSettings = LogSettings {
    bytes_max: 1 << 40,
    days: 3660,
};

fn write(folder: &Path, settings: LogSettings, records: &[RoundRecord]) {
    let mut state = State::take(folder, settings).unwrap();
    for record in records {
        state.append(record.clone()).unwrap();
    }
}

fn read(place: &Path) -> Vec<RoundRecord> {
    Replay::open(place).unwrap().map(Result::unwrap).collect()
}

/// Names of the files of a log, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("decisions")).collect();
    names.sort();
    names
}

/// The one file that was put aside.
fn segment(folder: &Path) -> PathBuf {
    let found: Vec<String> = names(folder)
        .into_iter()
        .filter(|name| name.contains('-'))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    folder.join(&found[0])
}
