//! Words on standard output.

use std::io::{self, Write};
use std::path::Path;

use pleach_experiments::error::Error;

/// Prints; a reader that has gone away, as `head` does, is no failure.
///
/// # Errors
/// [`Error::Problem`] where they cannot be written.
pub fn say(print: &mut dyn Write, words: &str) -> Result<(), Error> {
    match print.write_all(words.as_bytes()).and_then(|()| print.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io("write", Path::new("standard output"), source))
        }
        _ => Ok(()),
    }
}
