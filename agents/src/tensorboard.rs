//! TensorBoard event files, scalars only: a record format and two protobuf messages that have not changed since 2015.
//!
//! Written here, and not by a library, so that a full disk is an error and not a panic in a thread, and so that the
//! clock is the caller's.
//!
//! # Source
//! TensorFlow's `record_writer.h` (record = length, its checksum, data, its checksum; CRC-32C, rotated and offset),
//! `event.proto` and `summary.proto` (field numbers below).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// One event file.
#[derive(Debug)]
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Begins a new file in `folder`; `now_unix_s` goes into its name.
    pub fn create(folder: &Path, now_unix_s: f64) -> Result<EventFile, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let mut copy = 0;
        loop {
            let path = folder.join(format!(
                "events.out.tfevents.{:010}.pleach.{copy}",
                now_unix_s as u64
            ));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let mut events = EventFile { path, file };
                    let mut event = Vec::new();
                    fixed_64(&mut event, 1, now_unix_s);
                    bytes(&mut event, 3, b"brain.Event:2");
                    events.write(&event)?;
                    return Ok(events);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => copy += 1,
                Err(source) => return Err(Error::Io { path, source }),
            }
        }
    }

    /// Adds scalars of one step.
    pub fn scalars(&mut self, step: u64, now_unix_s: f64, tags: &[(String, f64)]) -> Result<(), Error> {
        let mut summary = Vec::new();
        for (tag, value) in tags {
            let mut scalar = Vec::new();
            bytes(&mut scalar, 1, tag.as_bytes());
            // Field 2, a 32-bit number.
            scalar.push(2 << 3 | 5);
            scalar.extend_from_slice(&(*value as f32).to_le_bytes());
            bytes(&mut summary, 1, &scalar);
        }
        let mut event = Vec::new();
        fixed_64(&mut event, 1, now_unix_s);
        // Field 2, a variable-length integer.
        event.push(2 << 3);
        varint(&mut event, step);
        bytes(&mut event, 5, &summary);
        self.write(&event)
    }

    fn write(&mut self, event: &[u8]) -> Result<(), Error> {
        let length = (event.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend_from_slice(&masked(&length).to_le_bytes());
        record.extend_from_slice(event);
        record.extend_from_slice(&masked(event).to_le_bytes());
        self.file.write_all(&record).map_err(Error::io(&self.path))
    }
}

fn fixed_64(message: &mut Vec<u8>, field: u8, value: f64) {
    message.push(field << 3 | 1);
    message.extend_from_slice(&value.to_le_bytes());
}

fn bytes(message: &mut Vec<u8>, field: u8, value: &[u8]) {
    message.push(field << 3 | 2);
    varint(message, value.len() as u64);
    message.extend_from_slice(value);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
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
        let mut events = EventFile::create(folder.path(), 1.5).unwrap();
        EventFile::create(folder.path(), 1.5).unwrap();
        events.scalars(300, 2.0, &[("a/b".to_owned(), 0.5)]).unwrap();
        let written = std::fs::read(folder.path().join("events.out.tfevents.0000000001.pleach.0")).unwrap();
        assert!(
            folder
                .path()
                .join("events.out.tfevents.0000000001.pleach.1")
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
