//! The commands: each turns its flags into calls of the library and prints what a person wants to see.

pub mod bench;
pub mod blend;
pub mod describe;
pub mod distill;
pub mod evaluate;
pub mod manual;
pub mod policies;
pub mod quickstart;
pub mod reproduce;
pub mod suite;
pub mod sweep;
pub mod tournament;
pub mod train;
pub mod workload;

use std::io::{self, Write};
use std::time::Duration;

use pleach_experiments::error::Error;

/// What a command knows of the world around it; nothing below reads the clock or the arguments.
pub struct Context<'a> {
    /// The command line as it was typed, for reports.
    pub command_line: String,
    /// Seconds since the program began.
    pub clock: &'a dyn Fn() -> f64,
    /// The same for work on several threads: how long plans take. It never reaches a decision.
    pub stopwatch: &'a (dyn Fn() -> Duration + Sync),
    /// Where results are printed.
    pub print: &'a mut dyn Write,
}

impl Context<'_> {
    /// Prints a text. A reader that went away is no error.
    ///
    /// # Errors
    /// Where standard output cannot be written.
    pub fn say(&mut self, text: &str) -> Result<(), Error> {
        match writeln!(self.print, "{text}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::Failed(format!("cannot write to standard output: {error}")))
            }
            _ => Ok(()),
        }
    }
}
