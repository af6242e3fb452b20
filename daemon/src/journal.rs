//! The decision log: one line a round, whole or not at all, bounded in size. What is read of it is bounded too, whatever is
//! there.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use pleach_scheduler::ExternalId;

use crate::error::Error;
use crate::files;
use crate::record::{LINE_MAX, RoundRecord};

/// Bytes that are read at once on the way back to the last end of a line.
const BLOCK: usize = 64 << 10;

/// The log of one daemon.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    bytes_max: u64,
    file: Option<File>,
}

impl Journal {
    /// The log of a folder, which is put aside at a size. Nothing is opened yet.
    pub(crate) fn new(folder: &Path, bytes_max: u64) -> Journal {
        Journal {
            path: log_path(folder),
            bytes_max,
            file: None,
        }
    }

    /// Appends a round, whole; a log that has grown too long is put aside first.
    ///
    /// # Errors
    /// What cannot be written; the line is lost and the log ends at the line before.
    pub(crate) fn append(&mut self, record: &RoundRecord) -> Result<(), Error> {
        let mut line = serde_json::to_vec(record).map_err(|error| Error::Text {
            path: self.path.clone(),
            line: 0,
            reason: error.to_string(),
        })?;
        line.push(b'\n');
        let result = self.write_line(&line);
        if result.is_err() {
            self.file = None;
        }
        result.map_err(Error::file(&self.path))
    }

    fn write_line(&mut self, line: &[u8]) -> std::io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => open(&self.path)?,
        };
        let before = file.metadata()?.len();
        if before > 0 && before + line.len() as u64 > self.bytes_max {
            std::fs::rename(&self.path, self.path.with_extension("jsonl.1"))?;
            file = open(&self.path)?;
        }
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(line).and_then(|()| file.flush()) {
            // A part of a line would spoil the next one.
            let _ = file.set_len(before);
            return Err(error);
        }
        self.file = Some(file);
        Ok(())
    }
}

/// The decision log of a folder.
#[must_use]
pub fn log_path(folder: &Path) -> PathBuf {
    folder.join("decisions.jsonl")
}

/// Opens a log to go on with it, behind its last whole line. It is looked for backwards, no further than the longest line
/// reaches: what has none is no log, and is left as it is.
fn open(path: &Path) -> std::io::Result<File> {
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(path)?;
    let len = file.metadata()?.len();
    let (mut end, mut block) = (len, vec![0; BLOCK]);
    while end > 0 {
        let num = end.min(BLOCK as u64) as usize;
        let start = end - num as u64;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block[..num])?;
        if let Some(at) = block[..num].iter().rposition(|byte| *byte == b'\n') {
            file.set_len(start + at as u64 + 1)?;
            return Ok(file);
        }
        let is_line = start > 0 || block[0] == b'{';
        if len - start > LINE_MAX as u64 || !is_line {
            return Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                "is no log of decisions: it ends in no line of one; move it away",
            ));
        }
        end = start;
    }
    // All of it is one line that was cut short.
    file.set_len(0)?;
    Ok(file)
}

/// The last rounds of a log that decided about a job, newest last, at most `most`.
///
/// # Errors
/// As [`crate::replay::Replay`].
pub fn rounds_of(folder: &Path, job: ExternalId, most: usize) -> Result<Vec<RoundRecord>, Error> {
    let mut found = Vec::new();
    let newest = log_path(folder);
    let word = format!("\"{job}\"");
    let mut line = String::new();
    for path in [newest.with_extension("jsonl.1"), newest] {
        let Ok(file) = File::open(&path) else { continue };
        let (mut lines, mut row) = (BufReader::new(file), 0);
        while files::log_line(&mut lines, &mut line, LINE_MAX).map_err(Error::file(&path))? {
            row += 1;
            if !line.contains(&word) {
                continue;
            }
            let record: RoundRecord = serde_json::from_str(&line).map_err(|error| Error::Text {
                path: path.clone(),
                line: row,
                reason: error.to_string(),
            })?;
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
    use crate::memory::Memory;
    use crate::replay::Replay;
    use crate::snapshot::{Snapshot, VERSION};

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
        let mut journal = Journal::new(folder.path(), 65_536);
        for round in 0..1000 {
            journal.append(&record(round)).unwrap();
        }
        let path = log_path(folder.path());
        let bytes = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert!(bytes(&path) <= 65_536 && bytes(&path.with_extension("jsonl.1")) <= 65_536);
        drop(journal);
        // A daemon that was killed in the middle of a line.
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"round\":9")
            .unwrap();
        let mut journal = Journal::new(folder.path(), 65_536);
        journal.append(&record(1000)).unwrap();
        let rounds: Vec<u64> = Replay::open(&path)
            .unwrap()
            .map(|record| record.unwrap().round)
            .collect();
        assert_eq!(rounds.last(), Some(&1000));
        assert!(rounds.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }

    #[test]
    fn a_long_file_without_an_end_of_a_line_is_left_as_it_is_and_costs_no_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = log_path(folder.path());
        let mut journal = Journal::new(folder.path(), u64::MAX);
        // Sparse: nothing of it is on the disk, all of it would be read.
        let len = LINE_MAX as u64 + (1 << 20);
        File::create(&path).unwrap().set_len(len).unwrap();
        let began = std::time::Instant::now();
        let said = journal.append(&record(1)).unwrap_err().to_string();
        assert!(
            said.contains("is no log of decisions") && said.contains("move it away"),
            "{said}"
        );
        assert_eq!(std::fs::metadata(&path).unwrap().len(), len);
        assert!(began.elapsed().as_secs() < 10);
        let notes = "the only copy of somebody's notes";
        std::fs::write(&path, notes).unwrap();
        assert!(journal.append(&record(1)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), notes);
        std::fs::write(&path, "{\"round\":9").unwrap();
        journal.append(&record(1)).unwrap();
        assert_eq!(Replay::open(&path).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_log_without_end_is_refused_by_its_first_byte() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", log_path(folder.path())).unwrap();
        let said = rounds_of(folder.path(), ExternalId::number(7), 5)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("decisions.jsonl") && said.contains("brace"),
            "{said}"
        );
        let said = Replay::open(&log_path(folder.path())).unwrap().next().unwrap();
        assert!(said.unwrap_err().to_string().contains("brace"));
    }
}
