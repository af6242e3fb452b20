//! The `pleach` command line: reads the arguments, the environment and the clock, calls the library, and turns errors into
//! words on standard error and an exit code. Nothing below reads any of these.

use std::io;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use pleach_experiments::error::{EXIT_DONE, Error};
use pleach_experiments::sweep::policy_unit;

use crate::commands::{
    Context, bench, blend, distill, evaluate, manual, policies, quickstart, reproduce, suite, sweep,
    tournament, train, workload,
};
use crate::flags::workload::WorkloadCommand;
use crate::flags::{Cli, Command};

mod commands;
mod flags;
mod progress;

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("pleach: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// The line as it was typed, without the folder of the program and without flags that no result depends on, so that two
/// reports of one configuration are the same bytes.
fn command_line() -> String {
    let mut line = vec!["pleach".to_string()];
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.split('=').next().unwrap_or_default() {
            "--out" | "--json" | "--threads" if !word.contains('=') => drop(words.next()),
            "--out" | "--json" | "--threads" | "--quiet" | "-q" | "--resume" | "--force" => {}
            _ => line.push(word),
        }
    }
    line.join(" ")
}

fn threads_of(command: &Command) -> Option<u16> {
    match command {
        Command::Quickstart(args) => args.run.threads,
        Command::Train(args) => args.run.threads,
        Command::Distill(args) => args.run.threads,
        Command::Evaluate(args) => args.run.threads,
        Command::Tournament(args) => args.threads,
        Command::Suite(args) => args.threads,
        Command::Reproduce(args) => args.threads,
        Command::Bench(args) => args.threads,
        Command::Workload(args) => match &args.command {
            WorkloadCommand::Describe(args) => args.run.threads,
            _ => None,
        },
        Command::Sweep(_)
        | Command::Blend(_)
        | Command::Policies(_)
        | Command::Features
        | Command::Completions(_)
        | Command::Man(_) => None,
    }
}

fn run(command: &Command) -> Result<u8, Error> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = threads_of(command) {
        pool = pool.num_threads(usize::from(threads));
    }
    pool.build_global()
        .map_err(|error| Error::Failed(format!("cannot start threads: {error}")))?;
    let print = &mut io::stdout();
    let began = Instant::now();
    let mut context = Context {
        command_line: command_line(),
        clock: &|| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64())
        },
        stopwatch: &|| began.elapsed(),
        print,
    };
    match command {
        Command::Quickstart(args) => quickstart::run(args, &mut context)?,
        Command::Train(args) => train::run(args, &mut context)?,
        Command::Blend(args) => blend::run(args, &mut context)?,
        Command::Distill(args) => distill::run(args, &mut context)?,
        Command::Evaluate(args) => evaluate::run(args, &mut context)?,
        Command::Tournament(args) => tournament::run(args, &mut context)?,
        Command::Suite(args) => suite::run(args, &mut context)?,
        Command::Reproduce(args) => reproduce::run(args, &mut context)?,
        Command::Bench(args) => bench::run(args, &mut context)?,
        Command::Policies(args) => policies::run(args, &mut context)?,
        Command::Features => policies::features(&mut context)?,
        Command::Workload(args) => workload::run(args, &mut context)?,
        Command::Completions(args) => manual::completions(args, &mut context)?,
        Command::Man(args) => manual::man(args, &mut context)?,
        Command::Sweep(args) => {
            let variable = |name: &str| std::env::var(name).ok();
            return sweep::dispatch(
                &args.command,
                &policy_unit::check,
                &policy_unit::work,
                variable,
                context.print,
            );
        }
    }
    Ok(EXIT_DONE)
}
