//! Words on standard output.

use std::io::{self, Write};

use crate::error::Error;

/// Prints a text and an end of line. A reader that has gone away, as `head` does, is no failure.
///
/// # Errors
/// Words that cannot be written: a full disk must not make half a script look like a whole one.
pub fn say(text: &str) -> Result<(), Error> {
    say_to(&mut io::stdout().lock(), text)
}

fn say_to(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(Error::File {
            path: "standard output".into(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_a_reader_that_has_gone_is_none() {
        let said = say_to(&mut Closed(io::ErrorKind::StorageFull), "half a script").unwrap_err();
        assert!(said.to_string().starts_with("standard output: "), "{said}");
        assert!(say_to(&mut Closed(io::ErrorKind::BrokenPipe), "a table").is_ok());
    }
}
