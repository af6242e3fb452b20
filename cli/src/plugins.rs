//! What the program registers before it reads a command line: the laboratory, and what a program of one's own has beside ours.

use std::process::ExitCode;

use pleach_experiments::error::Error;
use pleach_experiments::plugins::Plugins;

/// Registers the laboratory, where the program was built with it, and `own`. Once in a program, before anything is opened.
///
/// # Errors
/// A name that is taken or is none; a second call.
pub fn register(own: Plugins) -> Result<(), Error> {
    #[cfg(feature = "lab")]
    let own = pleach_lab::added_to(own);
    own.register()
}

/// The program `pleach` with more in it: reads the command line, and gives the exit code.
#[must_use]
pub fn main_with(own: Plugins) -> ExitCode {
    if let Err(error) = register(own) {
        crate::complain(&error.to_string());
        return ExitCode::from(error.exit_code());
    }
    ExitCode::from(crate::run(std::env::args_os().collect()))
}
