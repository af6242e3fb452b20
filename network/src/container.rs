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
use std::io::{Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::Error;

const CHECKSUM_BYTES: usize = 32;
const PREFIX_BYTES: usize = 8 + 4 + 8;
/// Largest file that is read: four lists of as many parameters as a network may have, and a header. *Assumed.*
const MAX_BYTES: u64 = (4 * 4 * Container::MAX_NUMBERS + (1 << 26)) as u64;

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
    /// Numbers in the longest list that is read, so that a damaged header cannot ask for all memory.
    pub const MAX_NUMBERS: usize = 1 << 28;

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
    /// [`Error::Io`] where the folder cannot be written; the old file is then as it was.
    pub fn save(bytes: &[u8], path: &Path, temporary_extension: &str) -> Result<(), Error> {
        let temporary = path.with_extension(temporary_extension);
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            drop(file);
            std::fs::rename(&temporary, path)
        };
        if let Err(source) = write() {
            // Half a file is of no use, and its room may be what is missing.
            let _ = std::fs::remove_file(&temporary);
            return Err(Error::io(path)(source));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Makes the rename durable where folders can be synced.
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Reads a file of one of these kinds: `kinds` are magics and the version of each that is read.
    ///
    /// # Errors
    /// [`Error::Io`] where it cannot be read; [`Error::File`] where it is of another kind or version, cut short, altered or
    /// too large.
    pub fn load(path: &Path, kinds: &[([u8; 8], u32)]) -> Result<Container, Error> {
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(Error::io(path))?;
        let mut file = file.take(MAX_BYTES + 1);
        file.read_to_end(&mut bytes).map_err(Error::io(path))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::file(path, format!("larger than {MAX_BYTES} bytes")));
        }
        Container::decode(&bytes, path, kinds)
    }

    fn decode(bytes: &[u8], path: &Path, kinds: &[([u8; 8], u32)]) -> Result<Container, Error> {
        let short = || Error::file(path, format!("cut short: {} bytes", bytes.len()));
        let magic = bytes.first_chunk::<8>().ok_or_else(short)?;
        let Some((_, known)) = kinds.iter().find(|(kind, _)| kind == magic) else {
            let names = kinds.iter().map(|(kind, _)| String::from_utf8_lossy(kind));
            let names: Vec<_> = names.collect();
            let reason = format!("not a checkpoint: it does not begin with {}", names.join(" or "));
            return Err(Error::file(path, reason));
        };
        let prefix = bytes.get(8..PREFIX_BYTES).ok_or_else(short)?;
        let version = u32::from_le_bytes([prefix[0], prefix[1], prefix[2], prefix[3]]);
        if version != *known {
            let reason = format!("format version {version}; this program reads version {known}");
            return Err(Error::file(path, reason));
        }
        let body = bytes.len().checked_sub(CHECKSUM_BYTES);
        let body = body.filter(|end| *end >= PREFIX_BYTES).ok_or_else(short)?;
        let (body, checksum) = bytes.split_at(body);
        if Sha256::digest(body).as_slice() != checksum {
            let reason = "the checksum does not agree: the file is damaged or cut short";
            return Err(Error::file(path, reason));
        }
        let mut length = [0; 8];
        length.copy_from_slice(&prefix[4..]);
        let length = usize::try_from(u64::from_le_bytes(length)).ok();
        let end = length.and_then(|length| length.checked_add(PREFIX_BYTES));
        let header = end
            .and_then(|end| body.get(PREFIX_BYTES..end))
            .ok_or_else(short)?;
        Ok(Container {
            magic: *magic,
            version,
            header: header.to_vec(),
            payload: body[PREFIX_BYTES + header.len()..].to_vec(),
        })
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
