//! The binary `pleach`. All of it is in the library beside it, which the Python package calls too.

use std::process::ExitCode;

fn main() -> ExitCode {
    pleach_cli::main_with(pleach_cli::Plugins::new())
}
