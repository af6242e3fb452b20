//! The decision log: one line a round, whole or not at all, bounded in size and by age. What is read of it is bounded too,
//! whatever is there.
//!
//! A file begins with a whole round ([`RoundRecord`]); later lines tell what changed since the line before ([`delta`]). A full
//! file is put aside and compressed ([`segments`]) by a thread of its own: it delays no round.

mod delta;
mod search;
pub(crate) mod segments;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use crate::config::LogSettings;
use crate::error::Error;
use crate::record::RoundRecord;

pub(crate) use self::delta::DeltaLine;
pub use self::search::rounds_of;
pub use self::segments::log_path;

/// Bytes at which a file is full; less where all files together are allowed little. *Ours*: one whole round of 5,000 nodes and
/// 20,000 jobs (10 MB) is then a small part of it, and a reader looks a job up in a second.
const SEGMENT_BYTES: u64 = 128 << 20;
/// Part of all bytes that are allowed at which a file is full.
const SEGMENTS_MIN: u64 = 4;
/// Time after which a file is full whatever its size, s: what is kept by days is kept by the day.
const SEGMENT_S: i64 = 86_400;

/// The log of one daemon.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    settings: LogSettings,
    running: Option<Running>,
    /// The last line, where the next one may tell what changed since.
    last: Option<RoundRecord>,
    packing: Option<JoinHandle<()>>,
    /// Something was put aside and is not being compressed yet.
    is_untidy: bool,
}

#[derive(Debug)]
struct Running {
    file: File,
    bytes: u64,
    begun_s: i64,
}

impl Journal {
    /// The log of a folder. Nothing is opened yet.
    pub(crate) fn new(folder: &Path, settings: LogSettings) -> Journal {
        Journal {
            folder: folder.to_owned(),
            settings,
            running: None,
            last: None,
            packing: None,
            is_untidy: false,
        }
    }

    /// Appends a round, whole; a log that is full is put aside first.
    ///
    /// # Errors
    /// What cannot be written; the line is lost and the log ends at the line before.
    pub(crate) fn append(&mut self, record: RoundRecord) -> Result<(), Error> {
        self.tidy(record.snapshot.taken_s);
        let written = self.write(&record);
        self.last = written.is_ok().then_some(record);
        if written.is_err() {
            self.running = None;
        }
        written.map_err(Error::file(log_path(&self.folder)))
    }

    fn write(&mut self, record: &RoundRecord) -> io::Result<()> {
        let now_s = record.snapshot.taken_s;
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.begin(now_s)?,
        };
        let delta = self.last.as_ref().map(|last| DeltaLine::between(last, record));
        let mut line = match &delta {
            Some(delta) => line(delta)?,
            None => line(record)?,
        };
        let bytes_max = (self.settings.bytes_max / SEGMENTS_MIN).min(SEGMENT_BYTES);
        let is_full = running.bytes + line.len() as u64 > bytes_max;
        if running.bytes > 0 && (is_full || now_s - running.begun_s >= SEGMENT_S) {
            segments::put_aside(&self.folder, &log_path(&self.folder), now_s)?;
            running = self.begin(now_s)?;
            if delta.is_some() {
                line = self::line(record)?;
            }
        }
        let written = running.file.write_all(&line).and_then(|()| running.file.flush());
        if let Err(error) = written {
            // A part of a line would spoil the next one.
            let _ = running.file.set_len(running.bytes);
            return Err(error);
        }
        running.bytes += line.len() as u64;
        self.running = Some(running);
        Ok(())
    }

    /// Opens the running file behind its last line, and has what was put aside compressed. How much there is costs no time: a
    /// file that ends in the middle of a line is put aside, where readers leave that line out.
    fn begin(&mut self, now_s: i64) -> io::Result<Running> {
        let path = log_path(&self.folder);
        let old = path.with_extension("jsonl.1");
        if old.is_file() {
            segments::put_aside(&self.folder, &old, now_s)?;
        }
        if path.exists() && !is_whole(&path)? {
            segments::put_aside(&self.folder, &path, now_s)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let bytes = file.metadata()?.len();
        // Also what an earlier process left.
        self.is_untidy = true;
        self.tidy(now_s);
        Ok(Running {
            file,
            bytes,
            begun_s: now_s,
        })
    }

    /// Has what was put aside compressed, unless that is under way.
    fn tidy(&mut self, now_s: i64) {
        let is_at_it = |packing: &JoinHandle<()>| !packing.is_finished();
        if !self.is_untidy || self.packing.as_ref().is_some_and(is_at_it) {
            return;
        }
        self.is_untidy = false;
        let (folder, settings) = (self.folder.clone(), self.settings);
        self.packing = Some(thread::spawn(move || {
            if let Err(error) = segments::tidy(&folder, settings, now_s) {
                tracing::warn!("the log in {}: {error}", folder.display());
            }
        }));
    }
}

impl Journal {
    fn join(&mut self) {
        if let Some(packing) = self.packing.take() {
            let _ = packing.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The next process that takes the folder finds no thread at work in it.
        self.join();
        if let Some(last) = &self.last {
            self.tidy(last.snapshot.taken_s);
            self.join();
        }
    }
}

fn line(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Whether a file ends behind a line of a log, or is empty.
///
/// # Errors
/// A file that cannot be read, is no file or does not begin as a log does: it is left as it is.
fn is_whole(path: &Path) -> io::Result<bool> {
    let refuse = |what: &str| {
        let words = format!("is no log of decisions: it {what}; move it away");
        Err(io::Error::new(io::ErrorKind::InvalidData, words))
    };
    if !path.is_file() {
        return refuse("is no file");
    }
    let mut file = File::open(path)?;
    let mut byte = [0];
    if file.read(&mut byte)? == 0 {
        return Ok(true);
    }
    if byte != *b"{" {
        return refuse("begins with no line of one");
    }
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut byte)?;
    Ok(byte == *b"\n")
}
