//! TensorBoard event files: a record format and a few protobuf messages that have not changed since 2015.
//!
//! Written here, and not by a library, so that a full disk is an error and not a panic in a thread, and so that the
//! clock is the caller's. Scalars, histograms and hyper-parameters; no images, no graphs.
//!
//! # Source
//! TensorFlow's `record_writer.h` (record = length, its checksum, data, its checksum; CRC-32C, rotated and offset),
//! `event.proto` and `summary.proto` (field numbers below).

mod message;
mod settings;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;
use crate::histogram::Histogram;
use message::Message;

/// `SessionLog.START` of `event.proto`.
const SESSION_START: u64 = 1;

/// One event file.
#[derive(Debug)]
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Begins a new file in `folder`; `now_unix_s` goes into its name. `resumed_at` is the step that the run goes on from:
    /// TensorBoard then forgets what earlier files say of later steps.
    pub fn create(folder: &Path, resumed_at: Option<u64>, now_unix_s: f64) -> Result<EventFile, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let mut copy = 0;
        let (path, file) = loop {
            // Read in the order of names.
            let name = format!("events.out.tfevents.{:010}.pleach.{copy:03}", now_unix_s as u64);
            let path = folder.join(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => copy += 1,
                Err(source) => return Err(Error::Io { path, source }),
            }
        };
        let mut events = EventFile { path, file };
        events.write(&Message::new().double(1, now_unix_s).bytes(3, b"brain.Event:2"))?;
        if let Some(step) = resumed_at {
            let start = Message::new().whole(1, SESSION_START);
            let event = Message::new().double(1, now_unix_s).whole(2, step + 1);
            events.write(&event.message(7, &start))?;
        }
        Ok(events)
    }

    /// Adds scalars of one step.
    pub fn scalars(&mut self, step: u64, now_unix_s: f64, tags: &[(String, f64)]) -> Result<(), Error> {
        let values = tags
            .iter()
            .map(|(tag, value)| Message::new().bytes(1, tag.as_bytes()).float(2, *value as f32));
        self.summary(step, now_unix_s, values)
    }

    /// Adds histograms of one step.
    pub fn histograms(
        &mut self,
        step: u64,
        now_unix_s: f64,
        tags: &[(String, Histogram)],
    ) -> Result<(), Error> {
        let values = tags.iter().map(|(tag, histogram)| {
            let counts = histogram.counts.iter().map(|count| *count as f64);
            let numbers = Message::new()
                .double(1, histogram.min)
                .double(2, histogram.max)
                .double(3, histogram.num as f64)
                .double(4, histogram.sum)
                .double(5, histogram.sum_squares)
                .doubles(6, histogram.limits())
                .doubles(7, counts);
            Message::new().bytes(1, tag.as_bytes()).message(5, &numbers)
        });
        self.summary(step, now_unix_s, values)
    }

    /// Adds the settings of the run.
    pub fn settings(&mut self, now_unix_s: f64, settings: &[(String, Value)]) -> Result<(), Error> {
        let values = [
            settings::session_start(settings, now_unix_s),
            settings::table("hyperparameters", settings),
        ];
        self.summary(0, now_unix_s, values.into_iter())
    }

    /// Notes that the run came to its end.
    pub fn end(&mut self, step: u64, now_unix_s: f64) -> Result<(), Error> {
        self.summary(step, now_unix_s, [settings::session_end(now_unix_s)].into_iter())
    }

    /// Brings all records to the disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io(&self.path))
    }

    fn summary(
        &mut self,
        step: u64,
        now_unix_s: f64,
        values: impl Iterator<Item = Message>,
    ) -> Result<(), Error> {
        let summary = values.fold(Message::new(), |summary, value| summary.message(1, &value));
        let event = Message::new().double(1, now_unix_s).whole(2, step);
        self.write(&event.message(5, &summary))
    }

    fn write(&mut self, event: &Message) -> Result<(), Error> {
        let event = event.as_bytes();
        let length = (event.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend_from_slice(&masked(&length).to_le_bytes());
        record.extend_from_slice(event);
        record.extend_from_slice(&masked(event).to_le_bytes());
        self.file.write_all(&record).map_err(Error::io(&self.path))
    }
}

fn masked(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: the files are small.
fn crc32c(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0x82f6_3b78
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_the_standard_test_string() {
        // RFC 3720, appendix B.4, and the check value of CRC-32C.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_scalar_is_written_byte_for_byte_as_the_format_says() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(folder.path(), None, 1.5).unwrap();
        EventFile::create(folder.path(), None, 1.5).unwrap();
        events.scalars(300, 2.0, &[("a/b".to_owned(), 0.5)]).unwrap();
        let written = std::fs::read(folder.path().join("events.out.tfevents.0000000001.pleach.000")).unwrap();
        assert!(
            folder
                .path()
                .join("events.out.tfevents.0000000001.pleach.001")
                .exists()
        );
        let first = 8 + 4 + (9 + 2 + 13) + 4;
        let record = &written[first..];
        let event = &record[12..record.len() - 4];
        assert_eq!(record[..8], (event.len() as u64).to_le_bytes());
        let mut expected = vec![0x09];
        expected.extend_from_slice(&2.0_f64.to_le_bytes());
        // Step 300; a summary of 12 bytes with one value of 10 bytes: tag "a/b", number 0.5.
        expected.extend_from_slice(&[
            0x10, 0xac, 0x02, 0x2a, 12, 0x0a, 10, 0x0a, 3, b'a', b'/', b'b', 0x15,
        ]);
        expected.extend_from_slice(&0.5_f32.to_le_bytes());
        assert_eq!(event, expected);
        assert_eq!(record[record.len() - 4..], masked(event).to_le_bytes());
    }
}
