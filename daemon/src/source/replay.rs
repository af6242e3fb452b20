//! Snapshots from a decision log, in the order in which they were taken.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::record::{LINE_MAX, RoundRecord};

/// Reads the rounds of a log one by one.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    lines: BufReader<File>,
    line: usize,
}

impl Replay {
    /// Opens a log.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn open(path: &Path) -> Result<Replay, Error> {
        let file = File::open(path).map_err(Error::file(path))?;
        Ok(Replay {
            path: path.to_owned(),
            lines: BufReader::new(file),
            line: 0,
        })
    }

    fn read(&mut self) -> Result<Option<RoundRecord>, Error> {
        let mut text = String::new();
        let mut bounded = (&mut self.lines).take(LINE_MAX as u64);
        let num = bounded.read_line(&mut text).map_err(Error::file(&self.path))?;
        self.line += 1;
        // A line without its end is one that was being written when the daemon or the disk ended.
        if num == 0 || !text.ends_with('\n') {
            return Ok(None);
        }
        let record = serde_json::from_str(&text).map_err(|error| Error::Text {
            path: self.path.clone(),
            line: self.line,
            reason: error.to_string(),
        })?;
        Ok(Some(record))
    }
}

impl Iterator for Replay {
    type Item = Result<RoundRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
