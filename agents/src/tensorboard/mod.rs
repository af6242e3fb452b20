//! TensorBoard event files: scalars, histograms and hyper-parameters; no images, no graphs.
//!
//! Messages and the framing of records are those of `tensorboard-proto` and `tensorboard-rs`. Its file writer is not used: it
//! panics in a thread where the disk is full, and reads the clock. Here a full disk is an error, and the clock is the caller's.
//!
//! # Source
//! TensorFlow's `event.proto` and `summary.proto`.

mod settings;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use protobuf::Message;
use serde_json::Value;
use tensorboard_proto::event::{Event, SessionLog, SessionLog_SessionStatus};
use tensorboard_proto::summary::{HistogramProto, Summary, Summary_Value};
use tensorboard_rs::record_writer::RecordWriter;

use crate::error::Error;
use crate::histogram::Histogram;

/// What the first event of every file says.
const FILE_VERSION: &str = "brain.Event:2";

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
                Err(source) => return Err(pleach_scheduler::Problem::io("write", &path, source).into()),
            }
        };
        let mut events = EventFile { path, file };
        let mut version = event(0, now_unix_s);
        version.set_file_version(FILE_VERSION.to_owned());
        events.write(&version)?;
        if let Some(step) = resumed_at {
            let mut session = SessionLog::new();
            session.set_status(SessionLog_SessionStatus::START);
            let mut start = event(step + 1, now_unix_s);
            start.set_session_log(session);
            events.write(&start)?;
        }
        Ok(events)
    }

    /// Adds scalars of one step.
    pub fn scalars(&mut self, step: u64, now_unix_s: f64, tags: &[(String, f64)]) -> Result<(), Error> {
        let values = tags.iter().map(|(tag, number)| {
            let mut value = tagged(tag);
            value.set_simple_value(*number as f32);
            value
        });
        self.summary(step, now_unix_s, values.collect())
    }

    /// Adds histograms of one step.
    pub fn histograms(
        &mut self,
        step: u64,
        now_unix_s: f64,
        tags: &[(String, Histogram)],
    ) -> Result<(), Error> {
        let values = tags.iter().map(|(tag, histogram)| {
            let mut numbers = HistogramProto::new();
            numbers.min = histogram.min;
            numbers.max = histogram.max;
            numbers.num = histogram.num as f64;
            numbers.sum = histogram.sum;
            numbers.sum_squares = histogram.sum_squares;
            numbers.bucket_limit = histogram.limits().collect();
            numbers.bucket = histogram.counts.iter().map(|count| *count as f64).collect();
            let mut value = tagged(tag);
            value.set_histo(numbers);
            value
        });
        self.summary(step, now_unix_s, values.collect())
    }

    /// Adds the settings of the run.
    pub fn settings(&mut self, now_unix_s: f64, settings: &[(String, Value)]) -> Result<(), Error> {
        let start = settings::session_start(settings, now_unix_s);
        let start = start.map_err(|error| self.refused(error))?;
        let table = settings::table("hyperparameters", settings);
        self.summary(0, now_unix_s, vec![start, table])
    }

    /// Notes that the run came to its end.
    pub fn end(&mut self, step: u64, now_unix_s: f64) -> Result<(), Error> {
        let end = settings::session_end(now_unix_s);
        let end = end.map_err(|error| self.refused(error))?;
        self.summary(step, now_unix_s, vec![end])
    }

    /// Brings all records to the disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io(&self.path))
    }

    fn summary(&mut self, step: u64, now_unix_s: f64, values: Vec<Summary_Value>) -> Result<(), Error> {
        let mut summary = Summary::new();
        summary.value = values.into();
        let mut event = event(step, now_unix_s);
        event.set_summary(summary);
        self.write(&event)
    }

    /// Writes one record at once, so that what a full disk leaves is cut within the last one.
    fn write(&mut self, event: &Event) -> Result<(), Error> {
        let event = event.write_to_bytes().map_err(|error| self.refused(error))?;
        let mut record = Vec::with_capacity(event.len() + 16);
        let framed = RecordWriter::new(&mut record).write(&event);
        framed
            .and_then(|()| self.file.write_all(&record))
            .map_err(Error::io(&self.path))
    }

    /// A message that cannot be encoded, in practice none.
    fn refused(&self, error: protobuf::ProtobufError) -> Error {
        Error::io(&self.path)(std::io::Error::other(error))
    }
}

fn event(step: u64, now_unix_s: f64) -> Event {
    let mut event = Event::new();
    event.wall_time = now_unix_s;
    event.step = i64::try_from(step).unwrap_or(i64::MAX);
    event
}

fn tagged(tag: &str) -> Summary_Value {
    let mut value = Summary_Value::new();
    value.tag = tag.to_owned();
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// # Source
    /// TensorFlow's `record_writer.h`; CRC-32C (Castagnoli) bit by bit, RFC 3720, appendix B.4.
    fn masked(data: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for byte in data {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            }
        }
        (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
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
        // The version: its time and its text.
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
        assert_eq!(record.len(), 8 + 4 + event.len() + 4);
        // The checksum of the length, worked out by the definition: CRC-32C, rotated and offset.
        assert_eq!(record[8..12], masked(&record[..8]).to_le_bytes());
        assert_eq!(record[record.len() - 4..], masked(event).to_le_bytes());
    }
}
