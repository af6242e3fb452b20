//! Snapshots from a decision log, in the order in which they were taken.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files;
use crate::record::{LINE_MAX, RoundRecord};

/// Reads the rounds of a log one by one.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    lines: BufReader<File>,
    line: usize,
    text: String,
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
            text: String::new(),
        })
    }

    fn read(&mut self) -> Result<Option<RoundRecord>, Error> {
        let is_whole = files::log_line(&mut self.lines, &mut self.text, LINE_MAX);
        if !is_whole.map_err(Error::file(&self.path))? {
            return Ok(None);
        }
        self.line += 1;
        let record = serde_json::from_str(&self.text).map_err(|error| Error::Text {
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
