//! The binary `pleach`. All of it is in the library beside it, which the Python package calls too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(pleach_cli::run(std::env::args_os().collect()))
}
