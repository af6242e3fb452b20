//! The commands: each turns its flags into calls of the library and prints what a person wants to see.

pub mod bench;
pub mod calibrate;
pub mod cluster;
pub mod describe;
pub mod distill;
pub mod emit;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod import;
pub mod index;
pub mod manual;
pub mod policies;
pub mod quickstart;
pub mod reproduce;
pub mod run;
pub mod say;
pub mod serve;
pub mod stop;
pub mod suite;
pub mod sweep;
pub mod sweep_unit;
pub mod tournament;
pub mod train;
pub mod twin;
pub mod verify;
pub mod watch;
pub mod workload;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pleach_experiments::error::Error;
use pleach_experiments::run_folder::atomic_file;
use serde::Serialize;

use self::stop::Stop;
use crate::flags::is_standard_output;

/// What a command knows of the world around it; nothing below reads the clock or the arguments.
pub struct Context<'a> {
    /// The command line as it was typed, for reports.
    pub command_line: String,
    /// Seconds since the program began.
    pub clock: &'a dyn Fn() -> f64,
    /// The same for work on several threads: how long plans take. It never reaches a decision.
    pub stopwatch: &'a (dyn Fn() -> Duration + Sync),
    /// Where words and tables are printed; nowhere with `--json -`.
    pub print: &'a mut dyn Write,
    /// Standard output for what `--json -` asks for.
    pub data: &'a mut dyn Write,
    /// Whether the program was asked to end.
    pub stop: Arc<Stop>,
}

impl Context<'_> {
    /// Prints a text. A reader that went away is no error.
    ///
    /// # Errors
    /// Where standard output cannot be written.
    pub fn say(&mut self, text: &str) -> Result<(), Error> {
        printed(writeln!(self.print, "{text}"))
    }

    /// Writes what `--json PATH` asks for: into the file, or for `-` to standard output.
    ///
    /// # Errors
    /// A file, or standard output, that cannot be written.
    pub fn write_json(&mut self, path: &Path, value: &impl Serialize) -> Result<(), Error> {
        if !is_standard_output(path) {
            return atomic_file::write_json(path, value);
        }
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Error::Failed(format!("the results cannot be written as JSON: {error}")))?;
        printed(writeln!(self.data, "{text}").and_then(|()| self.data.flush()))
    }

    /// The same for what grows: a file has what is there so far, standard output only what there is in the end.
    ///
    /// # Errors
    /// As [`Context::write_json`].
    pub fn write_growing_json(
        &mut self,
        path: &Path,
        is_whole: bool,
        value: &impl Serialize,
    ) -> Result<(), Error> {
        if is_whole || !is_standard_output(path) {
            return self.write_json(path, value);
        }
        Ok(())
    }
}

/// A reader that went away, as `head` does, is no error.
fn printed(outcome: io::Result<()>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
