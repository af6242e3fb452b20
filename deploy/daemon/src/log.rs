//! What a program tells its operator while it works: messages on standard error, for people or for collectors of logs. The log of
//! decisions is another thing ([`crate::state`]).

use std::io::stderr;

use clap::ValueEnum;

/// How messages are written to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// For people: time (UTC), level, message.
    Text,
    /// A JSON object a line, with `timestamp`, `level` and `fields.message`.
    Json,
}

impl LogForm {
    /// From now on, messages of `tracing` of level *info* and above are written in this form. Only the first call in a program
    /// counts.
    pub fn start(self) {
        let log = tracing_subscriber::fmt()
            .with_writer(stderr)
            .with_target(false)
            // A standard error that cannot be written to would otherwise end the program.
            .log_internal_errors(false);
        let _ = match self {
            LogForm::Text => log.with_ansi(false).try_init(),
            LogForm::Json => log.json().try_init(),
        };
    }
}

/// A message as one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.trim_end().replace('\n', " | ")
}
