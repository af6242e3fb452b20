//! What commands share, those of `pleach` and those that a program registers: flags, and the world around a command.
//!
//! The clock, standard output and signals are the program's: a command receives them in its [`Context`].

pub mod flags;
pub mod grid_table;
pub mod stop;

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::{ArgMatches, Args};
use serde::Serialize;

use self::flags::is_standard_output;
use self::stop::Stop;
use crate::error::Error;
use crate::progress::Watcher;
use crate::run_folder::atomic_file;

/// A command of a program's own: its flags, and what it does with them.
pub trait Runs: Args {
    /// The word after the program's name.
    const NAME: &'static str;
    /// What it does, for the list of commands.
    const ABOUT: &'static str;

    /// Does it.
    ///
    /// # Errors
    /// Flags that cannot be used together, files that cannot be read or written, what fails on the way.
    fn run(&self, context: &mut Context<'_>) -> Result<(), Error>;
}

/// A command by its name.
#[derive(Clone, Copy, Debug)]
pub struct OwnCommand {
    /// The word after the program's name.
    pub name: &'static str,
    /// Gives a command its flags and its words.
    pub define: fn(clap::Command) -> clap::Command,
    /// Runs it with the flags that were given.
    pub run: fn(&ArgMatches, &mut Context<'_>) -> Result<(), Error>,
}

impl OwnCommand {
    /// A command by the type of its flags.
    #[must_use]
    pub fn of<A: Runs>() -> OwnCommand {
        OwnCommand {
            name: A::NAME,
            define: |command| A::augment_args(command).about(A::ABOUT).long_about(None),
            run: |matches, context| {
                let args = A::from_arg_matches(matches);
                args.map_err(|error| Error::Failed(error.to_string()))?
                    .run(context)
            },
        }
    }
}

static OWN: OnceLock<Vec<OwnCommand>> = OnceLock::new();

/// Keeps the program's own commands, once.
///
/// # Errors
/// A second call.
pub fn register(commands: Vec<OwnCommand>) -> Result<(), Error> {
    let hint = "Name all of them in one call.";
    let again = |_| Error::config("command", "registered again", "once in a program", hint);
    OWN.set(commands).map_err(again)
}

/// Commands of the program's own, in the order in which they were named.
#[must_use]
pub fn own_commands() -> &'static [OwnCommand] {
    OWN.get().map_or(&[], Vec::as_slice)
}

/// What a command knows of the world around it; nothing below reads the clock or the arguments.
pub struct Context<'a> {
    /// The command line as it was typed, for reports.
    pub command_line: String,
    /// Flags that the line gives, by their names.
    pub given: Vec<String>,
    /// Seconds since the program began.
    pub clock: &'a dyn Fn() -> f64,
    /// The same for work on several threads: how long plans take. It never reaches a decision.
    pub stopwatch: &'a (dyn Fn() -> Duration + Sync),
    /// Where words and tables are printed; nowhere with `--json -`.
    pub print: &'a mut dyn Write,
    /// Standard output for what `--json -` asks for.
    pub data: &'a mut dyn Write,
    /// Bars or lines of progress on standard error; none for a quiet command.
    pub bars: fn(bool) -> Watcher,
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
