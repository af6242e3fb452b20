//! The container of our binary files: a JSON header, lists of `f32`, and a checksum of both.
//!
//! ```text
//! 8 bytes   which kind of file it is
//! u32       version of that kind, little-endian like all that follows
//! u64       length of the header
//! header    JSON
//! f32 ...   numbers, as many as the header says
//! 32 bytes  SHA-256 of everything above
//! ```
//!
//! A file is written under a temporary name, synced and renamed, so a crash leaves the old one. A file that is cut short,
//! altered or too large is refused and says why.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use pleach_scheduler::problem::files;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use crate::Error;

const CHECKSUM_BYTES: usize = 32;
const PREFIX_BYTES: usize = 8 + 4 + 8;
/// Largest header that is read, bytes: one of 10,000 columns is below 1 MB.
const HEADER_BYTES_MAX: u64 = 1 << 24;

/// What a file holds, checksum verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// Which kind of file it is.
    pub magic: [u8; 8],
    /// Version of that kind.
    pub version: u32,
    /// JSON.
    pub header: Vec<u8>,
    /// Little-endian `f32`, list after list.
    payload: Vec<u8>,
}

impl Container {
    /// The bytes of a file.
    #[must_use]
    pub fn encode(magic: [u8; 8], version: u32, header: &[u8], lists: &[&[f32]]) -> Vec<u8> {
        let mut bytes = magic.to_vec();
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
        bytes.extend_from_slice(header);
        for numbers in lists {
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        let checksum = Sha256::digest(&bytes);
        bytes.extend_from_slice(&checksum);
        bytes
    }

    /// Writes bytes under a temporary name, syncs them and renames the file.
    ///
    /// # Errors
    /// An [`Error`] where the folder cannot be written; the old file is then as it was.
    pub fn save(bytes: &[u8], path: &Path, temporary_extension: &str) -> Result<(), Error> {
        let temporary = path.with_extension(temporary_extension);
        files::replace(path, &temporary, |file| file.write_all(bytes)).map_err(Error::unwritten(path))
    }

    /// Opens a file of one of these kinds: `kinds` are magics and the version of each that is read. What does not begin as one
    /// costs eight bytes; no file costs more than its header before the caller passes the number of numbers that follow to
    /// `Opened::read`.
    ///
    /// # Errors
    /// An [`Error`] where it cannot be read, or where it is of another kind or version, or cut short in its header.
    pub fn open<'a>(path: &'a Path, kinds: &[([u8; 8], u32)]) -> Result<Opened<'a>, Error> {
        let file = File::open(path).map_err(Error::unread(path))?;
        Opened::of(file, path, kinds)
    }

    /// Numbers in all lists together; None where bytes are left over.
    #[must_use]
    pub fn num_numbers(&self) -> Option<usize> {
        let whole = self.payload.len().is_multiple_of(4);
        whole.then_some(self.payload.len() / 4)
    }

    /// All numbers, list after list.
    pub fn numbers(&self) -> impl Iterator<Item = f32> + '_ {
        let (chunks, _) = self.payload.as_chunks::<4>();
        chunks.iter().map(|bytes| f32::from_le_bytes(*bytes))
    }
}

/// A file as far as its header. Nothing of it is verified yet.
#[derive(Debug)]
pub struct Opened<'a, R = File> {
    /// Which kind of file it is.
    pub magic: [u8; 8],
    /// JSON.
    pub header: Vec<u8>,
    version: u32,
    source: Source<'a, R>,
}

impl<'a, R: Read> Opened<'a, R> {
    fn of(file: R, path: &'a Path, kinds: &[([u8; 8], u32)]) -> Result<Opened<'a, R>, Error> {
        let mut source = Source {
            file,
            path,
            bytes: Vec::new(),
        };
        let mut magic = [0; 8];
        magic.copy_from_slice(source.next(8)?);
        let Some((_, known)) = kinds.iter().find(|(kind, _)| *kind == magic) else {
            let names = kinds.iter().map(|(kind, _)| String::from_utf8_lossy(kind));
            let names: Vec<_> = names.collect();
            let reason = format!("not a checkpoint: it does not begin with {}", names.join(" or "));
            return Err(Error::data(path, reason));
        };
        let version = source.next(4)?;
        let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
        if version != *known {
            let reason = format!("format version {version}; this program reads version {known}");
            return Err(Error::data(path, reason));
        }
        let mut length = [0; 8];
        length.copy_from_slice(source.next(8)?);
        let length = u64::from_le_bytes(length);
        if length > HEADER_BYTES_MAX {
            let reason = format!("damaged: a header of {length} bytes; allowed is up to {HEADER_BYTES_MAX}");
            return Err(Error::data(path, reason));
        }
        let header = source.next(length)?.to_vec();
        let former = serde_json::from_slice::<Headed>(&header).unwrap_or_default();
        if former.contract.entity_hash.is_some() {
            return Err(Error::data(path, ENTITIES_LEFT));
        }
        Ok(Opened {
            magic,
            header,
            version,
            source,
        })
    }

    /// Reads the rest, which must not be longer than `num_lists_max` lists of `num_parameters` numbers, and verifies the
    /// checksum. The caller has worked out that number from what the header says of the network, and not from a count in it: no
    /// file costs more than the largest network does.
    ///
    /// # Errors
    /// As [`Container::open`]; An [`Error`] where it is altered or too large.
    pub fn read(self, num_parameters: usize, num_lists_max: usize) -> Result<Container, Error> {
        let Opened {
            magic,
            header,
            version,
            mut source,
        } = self;
        let path = source.path;
        let payload_bytes_max = (num_lists_max.saturating_mul(num_parameters) as u64).saturating_mul(4);
        source.up_to(payload_bytes_max.saturating_add(CHECKSUM_BYTES as u64 + 1))?;
        let body = source.bytes.len().checked_sub(CHECKSUM_BYTES);
        let body = body.filter(|end| *end >= PREFIX_BYTES + header.len());
        let body = body.ok_or_else(|| source.cut_short())?;
        if (body - PREFIX_BYTES - header.len()) as u64 > payload_bytes_max {
            let reason = format!("longer than the {num_parameters} parameters of its network");
            return Err(Error::data(path, reason));
        }
        let (body, checksum) = source.bytes.split_at(body);
        if Sha256::digest(body).as_slice() != checksum {
            let reason = "the checksum does not agree: the file is damaged or cut short";
            return Err(Error::data(path, reason));
        }
        Ok(Container {
            magic,
            version,
            payload: body[PREFIX_BYTES + header.len()..].to_vec(),
            header,
        })
    }
}

/// What is looked for in every header; the program that opened the file reads the rest.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Headed {
    contract: Former,
}

/// What networks of earlier versions had and none has any more.
#[derive(Default, Deserialize)]
struct Former {
    entity_hash: Option<IgnoredAny>,
}

/// Why a network that saw more than candidates and global features is not read.
const ENTITIES_LEFT: &str = "the network also sees running jobs and groups of nodes (`env.entities`), which left the program \
                             because they were worth nothing; train it anew without";

/// A file as far as it has been read.
#[derive(Debug)]
struct Source<'a, R> {
    file: R,
    path: &'a Path,
    bytes: Vec<u8>,
}

impl<R: Read> Source<'_, R> {
    /// Reads so many bytes more.
    fn next(&mut self, num_bytes: u64) -> Result<&[u8], Error> {
        let from = self.bytes.len();
        if self.up_to(num_bytes)? < num_bytes {
            return Err(self.cut_short());
        }
        Ok(&self.bytes[from..])
    }

    /// Reads so many bytes more, or fewer where the file ends; how many.
    fn up_to(&mut self, num_bytes: u64) -> Result<u64, Error> {
        let mut part = self.file.by_ref().take(num_bytes);
        let found = part
            .read_to_end(&mut self.bytes)
            .map_err(Error::unread(self.path))?;
        Ok(found as u64)
    }

    fn cut_short(&self) -> Error {
        Error::data(self.path, format!("cut short: {} bytes", self.bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const KIND: ([u8; 8], u32) = (*b"PLEACHXX", 1);

    /// Something without an end, of which is counted what is read.
    struct Endless<'a> {
        start: &'a [u8],
        then: u8,
        num_read: &'a Cell<u64>,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let from_start = self.start.read(into)?;
            into[from_start..].fill(self.then);
            self.num_read.set(self.num_read.get() + into.len() as u64);
            Ok(into.len())
        }
    }

    #[test]
    fn networks_that_saw_what_left_are_refused_and_say_what() {
        let header = br#"{"num_parameters":1,"contract":{"entity_hash":"24667e"}}"#;
        let bytes = Container::encode(KIND.0, KIND.1, header, &[&[1.0]]);
        let refused = Opened::of(bytes.as_slice(), Path::new("a.ckpt"), &[KIND]).unwrap_err();
        assert!(refused.to_string().contains("env.entities"), "{refused}");
    }

    #[test]
    fn what_is_of_another_kind_or_has_no_end_is_read_no_further_than_a_file_of_ours_would_be() {
        let numbers = vec![1.0; 100];
        let good = Container::encode(KIND.0, KIND.1, br#"{"num_parameters":100,"more":1}"#, &[&numbers]);
        let mut long_header = good[..PREFIX_BYTES].to_vec();
        long_header[12..].copy_from_slice(&u64::MAX.to_le_bytes());
        for (start, then, words) in [
            (&[][..], 0, "does not begin with PLEACHXX"),
            (&[][..], b'P', "does not begin with PLEACHXX"),
            (&long_header[..], 0, "allowed is up to 16777216"),
            (&good[..], 0, "longer than the 100 parameters"),
        ] {
            let num_read = Cell::new(0);
            let endless = Endless {
                start,
                then,
                num_read: &num_read,
            };
            let opened = Opened::of(endless, Path::new("a"), &[KIND]);
            let reason = opened
                .and_then(|opened| opened.read(100, 4))
                .unwrap_err()
                .to_string();
            assert!(reason.contains(words), "{reason}");
            let most = (good.len() + 3 * 400 + 1) as u64;
            assert!(num_read.get() <= most, "{} bytes read: {reason}", num_read.get());
        }
        let opened = Opened::of(good.as_slice(), Path::new("a"), &[KIND]).unwrap();
        assert_eq!(opened.read(100, 4).unwrap().num_numbers(), Some(100));
    }
}
