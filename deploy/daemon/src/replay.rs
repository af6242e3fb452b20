//! Rounds from a decision log, in the order in which they were written, whole ones again.

use std::collections::VecDeque;
use std::fmt;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files;
use crate::journal::DeltaLine;
use crate::journal::segments::{self, Segment};
use crate::record::{BEGINS, LINE_MAX, RoundRecord};

/// Reads the rounds of a log one by one. One round and one line of text are in memory, however long the log.
pub struct Replay {
    files: VecDeque<PathBuf>,
    lines: Option<Lines>,
    /// The last round.
    record: Option<RoundRecord>,
    text: String,
}

/// A file that is being read.
struct Lines {
    path: PathBuf,
    lines: Box<dyn BufRead>,
    row: usize,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Replay {
    /// Opens a log: a daemon's folder, or one of its files, compressed or not.
    ///
    /// # Errors
    /// What cannot be opened; a folder without a log.
    pub fn open(path: &Path) -> Result<Replay, Error> {
        Replay::since(&[path], i64::MIN)
    }

    /// Opens folders and files, in their order, without files all of whose rounds are of before this Unix time, s.
    ///
    /// # Errors
    /// As [`Replay::open`].
    pub fn since<P: AsRef<Path>>(places: &[P], since_s: i64) -> Result<Replay, Error> {
        let mut files = VecDeque::new();
        for place in places.iter().map(AsRef::as_ref) {
            if !place.is_dir() {
                // It is read later; where it is missing, that is an error now.
                segments::open(place).map_err(Error::file(place))?;
                files.push_back(place.to_owned());
                continue;
            }
            let found = segments::files(place).map_err(Error::file(place))?;
            if found.is_empty() {
                return Err(Error::Text {
                    path: place.to_owned(),
                    line: 0,
                    reason: "has no log: no decisions.jsonl and no decisions-UNIXTIME.jsonl.zst".into(),
                });
            }
            let is_recent = |segment: &Segment| segment.until_s >= since_s;
            files.extend(found.into_iter().filter(is_recent).map(|segment| segment.path));
        }
        Ok(Replay {
            files,
            lines: None,
            record: None,
            text: String::new(),
        })
    }

    /// The next round; none after the last one.
    ///
    /// # Errors
    /// A file that cannot be read or is no log, a line that is missing. Nothing is read behind it.
    pub fn next_round(&mut self) -> Result<Option<&RoundRecord>, Error> {
        let is_read = self.read();
        if is_read.is_err() {
            (self.files, self.lines) = (VecDeque::new(), None);
        }
        Ok(is_read?.then_some(()).and(self.record.as_ref()))
    }

    /// Whether there was a further round.
    fn read(&mut self) -> Result<bool, Error> {
        loop {
            let Some(lines) = &mut self.lines else {
                let Some(path) = self.files.pop_front() else {
                    return Ok(false);
                };
                let lines = segments::open(&path).map_err(Error::file(&path))?;
                // No file goes on where another one ended.
                self.record = None;
                self.lines = Some(Lines { path, lines, row: 0 });
                continue;
            };
            let is_whole = files::log_line(&mut lines.lines, &mut self.text, LINE_MAX);
            if !is_whole.map_err(Error::file(&lines.path))? {
                self.lines = None;
                continue;
            }
            lines.row += 1;
            return take_in(&self.text, &mut self.record)
                .map(|()| true)
                .map_err(|reason| Error::Text {
                    path: lines.path.clone(),
                    line: lines.row,
                    reason,
                });
        }
    }
}

/// Makes the round of a line of the round before.
fn take_in(text: &str, record: &mut Option<RoundRecord>) -> Result<(), String> {
    if !text.starts_with(BEGINS) {
        *record = Some(serde_json::from_str(text).map_err(|error| error.to_string())?);
        return Ok(());
    }
    let line: DeltaLine = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match record {
        Some(record) => line.delta.apply(record),
        None => Err("tells what changed since a round, and no whole round is before it".into()),
    }
}

impl Iterator for Replay {
    type Item = Result<RoundRecord, Error>;

    /// As [`Replay::next_round`], a copy.
    fn next(&mut self) -> Option<Self::Item> {
        self.next_round().map(|record| record.cloned()).transpose()
    }
}
