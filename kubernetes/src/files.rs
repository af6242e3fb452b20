//! Files of the operator: configuration, certificates, tokens. Every read is bounded.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::Error;

/// The bytes of a file of at most `most` bytes.
///
/// # Errors
/// A file that cannot be read, or is longer.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > most {
        return Err(Error::Text {
            path: path.to_owned(),
            reason: format!("longer than {most} bytes"),
        });
    }
    Ok(bytes)
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// As [`bytes`]; bytes that are no UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String, Error> {
    String::from_utf8(bytes(path, most)?).map_err(|error| Error::Text {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}
