//! The `pleach` command line: reads the arguments and the environment, calls the library, and turns errors into words on
//! standard error and an exit code. Nothing below reads the clock, the environment or the arguments.

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pleach_experiments::cli::sweep::{GatherArgs, PlanArgs, StatusArgs};
use pleach_experiments::error::Error;
use pleach_experiments::sweep::command;

/// Learns schedulers for shared GPU clusters, and prunes them into decision trees that people can read.
#[derive(Debug, Parser)]
#[command(
    name = "pleach",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands that need no other crate; the others join as `pleach_experiments::cli::Command`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Plan, watch and gather many independent units
    #[command(subcommand)]
    Sweep(SweepCommand),
}

#[derive(Debug, Subcommand)]
enum SweepCommand {
    /// Turn a grid into a manifest of units
    Plan(PlanArgs),
    /// Say which units are done, failed or missing
    Status(StatusArgs),
    /// Merge all results into one CSV, one JSON and one page
    Gather(GatherArgs),
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("pleach: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(command: &Command) -> Result<u8, Error> {
    let print = &mut io::stdout();
    match command {
        Command::Sweep(SweepCommand::Plan(args)) => command::plan(args, &|_| Ok(()), print),
        Command::Sweep(SweepCommand::Status(args)) => command::status(args, print),
        Command::Sweep(SweepCommand::Gather(args)) => command::gather(args, print),
    }
}
