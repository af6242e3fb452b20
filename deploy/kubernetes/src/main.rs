//! The program `pleach-kubernetes`: reads arguments and the clock, hears signals, calls the library.

mod arguments;
mod commands;
mod host;
mod run;

use std::process::ExitCode;

use arguments::{Cli, Command};
use clap::Parser;
use host::block_on;
use pleach_daemon::operator::{self, code};
use pleach_kubernetes::{Error, Settings};

use crate::run::Hearing;

fn main() -> ExitCode {
    // Before all else: a SIGHUP in the first moment of a controller would end it.
    let hearing = std::env::args_os().any(|word| word == "run").then(Hearing::begin);
    let cli = Cli::parse();
    cli.log_form.start();
    let result = settings(&cli).and_then(|settings| match &cli.command {
        Command::Run(args) => run::run(settings, args, hearing.unwrap_or_else(Hearing::begin)?),
        Command::Status => commands::status(&settings),
        Command::Explain(args) => block_on(commands::explain(&settings, &args.job)),
        Command::WhyNot(args) => block_on(commands::why_not(&settings, args)),
        Command::HandBack(args) => block_on(commands::hand_back(&settings, args)),
        Command::Replay(args) => Ok(code(operator::replay(&settings.rounds(), args)?)),
        Command::Diff(args) => {
            operator::diff(&settings.rounds(), &settings.state_dir, args, host::now_s())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Capture(args) => {
            operator::capture(settings.rounds(), args)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Check(args) => block_on(commands::check(&settings, args)),
    });
    match result {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn settings(cli: &Cli) -> Result<Settings, Error> {
    let mut settings = match &cli.config {
        Some(path) => Settings::load(path)?,
        None => Settings::default(),
    };
    if let Some(folder) = &cli.state_dir {
        settings.state_dir.clone_from(folder);
    }
    if let Some(drive) = cli.drive {
        settings.drive = drive;
        settings.validate()?;
    }
    Ok(settings)
}
