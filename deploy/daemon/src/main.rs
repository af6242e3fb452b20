//! The program `pleach-scheduler`: reads arguments and the clock, hears signals, calls the library.

mod arguments;
mod commands;
mod run;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use pleach_daemon::log::one_line;
use pleach_daemon::operator::{self, code};
use pleach_daemon::{Error, Settings};

use crate::arguments::{Cli, Command, OfJob};
use crate::run::Wishes;

fn main() -> ExitCode {
    // Before all else: a SIGHUP in the first moment of a daemon would end it.
    let wishes = std::env::args_os().any(|word| word == "run").then(Wishes::hear);
    let cli = Cli::parse();
    cli.log_form.start();
    match dispatch(&cli, wishes) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{}", one_line(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn settings(cli: &Cli) -> Result<Settings, Error> {
    let mut settings = match &cli.config {
        Some(path) => Settings::load(path)?,
        None => Settings::default(),
    };
    if let Some(folder) = &cli.state_dir {
        settings.state_dir.clone_from(folder);
    }
    if let Some(partition) = &cli.partition {
        settings.partition = Some(partition.clone());
    }
    Ok(settings)
}

fn dispatch(cli: &Cli, wishes: Option<Wishes>) -> Result<ExitCode, Error> {
    let settings = settings(cli)?;
    let folder = &settings.state_dir;
    match &cli.command {
        Command::Run(args) => run::run(&settings, args, wishes.unwrap_or_else(Wishes::hear)),
        Command::Status => commands::status(&settings),
        Command::Explain(OfJob { job }) => {
            operator::explain(folder, *job, &format!("job {job}"), &job.to_string()).map(code)
        }
        Command::WhyNot(args) => commands::why_not(&settings, args),
        Command::HandBack(args) => commands::hand_back(&settings, args),
        Command::Replay(args) => operator::replay(&settings.rounds(), args).map(code),
        Command::Diff(args) => {
            operator::diff(&settings.rounds(), folder, args, now_s()).map(|()| ExitCode::SUCCESS)
        }
        Command::Capture(args) => operator::capture(settings.rounds(), args).map(|()| ExitCode::SUCCESS),
    }
}
