//! Files of the operator and of the daemon itself. Every read is bounded, whatever the name leads to.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;

use pleach_scheduler::problem::files;

use crate::error::Error;

/// The bytes of a file of at most `most` bytes.
///
/// # Errors
/// A file that cannot be read, or is longer.
pub fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let read = File::open(path).and_then(|file| files::at_most(file, most));
    let bytes = read.map_err(Error::file(path))?;
    bytes.ok_or_else(|| refuse(path, format!("longer than {most} bytes")))
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// As [`bytes`]; bytes that are no UTF-8.
pub fn text(path: &Path, most: u64) -> Result<String, Error> {
    String::from_utf8(bytes(path, most)?).map_err(|error| refuse(path, error.to_string()))
}

/// Replaces a file of a folder as a whole, by another one that is renamed.
///
/// # Errors
/// What cannot be written; the file is then as it was.
pub fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let path = folder.join(name);
    let part = folder.join(format!("{name}.part"));
    files::replace(&path, &part, |file| file.write_all(bytes)).map_err(Error::file(&path))
}

fn refuse(path: &Path, reason: String) -> Error {
    Error::Text {
        path: path.to_owned(),
        line: 0,
        reason,
    }
}

/// Reads the next line of a log into `line`; false where there is no further whole line. What begins with anything but a brace is
/// no line of a log, and is found out by its first byte.
///
/// # Errors
/// What cannot be read; a line of more than `most` bytes; what is no line of a log.
pub(crate) fn log_line(lines: &mut impl BufRead, line: &mut String, most: usize) -> std::io::Result<bool> {
    let bad = |words: String| Err(std::io::Error::new(std::io::ErrorKind::InvalidData, words));
    line.clear();
    match lines.fill_buf()?.first() {
        None => return Ok(false),
        Some(b'{') => {}
        Some(byte) => {
            return bad(format!(
                "a line of the log begins with a brace, not with the byte {byte}"
            ));
        }
    }
    lines.take(most as u64 + 1).read_line(line)?;
    if line.len() > most {
        return bad(format!("a line of more than {most} bytes"));
    }
    // A line without its end is one that was being written when the daemon or the disk ended.
    Ok(line.ends_with('\n'))
}
