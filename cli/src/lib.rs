//! The `pleach` command line: reads the environment and the clock, hears signals, calls the library, and turns errors into
//! words on standard error and an exit code. Nothing below does any of these.
//!
//! A library with one door, [`run`], so that the program `pleach` and the Python package are the same command line; and
//! [`main_with`] for programs that have policies, rewards, generators or networks of their own.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, FromArgMatches as _};
use pleach_experiments::command::stop::Stop;
use pleach_experiments::error::{
    EXIT_AGAIN, EXIT_CONFIG, EXIT_DONE, Error, exit_code_of_signal, signal_name,
};
use pleach_experiments::removed::{Place, instead};

use crate::commands::{
    Context, calibrate, cluster, distill, evaluate, explain, export, index, manual, policies, quickstart,
    report, run as site_run, sweep, sweep_unit, train, twin, verify, watch, when, workload,
};
use crate::flags::sweep::SweepCommand;
use crate::flags::{Cli, Command, THREADS_MAX, is_standard_output};
use crate::progress::bars;

mod commands;
mod flags;
mod plugins;
mod progress;

pub use pleach_experiments::plugins::Plugins;
pub use plugins::{main_with, register};
// So that a program of one's own depends on this crate alone.
pub use {
    pleach_agents as agents, pleach_dealing as dealing, pleach_env as env, pleach_experiments as experiments,
    pleach_network as network, pleach_scheduler as scheduler, pleach_serving as serving,
};

/// Variables that the thread pool would read by itself, without a bound. The second is its older name.
const THREAD_VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];

/// Runs a command line, whose first word is the name of the program, and returns its exit code. Once in a process: it sets
/// up the thread pool and hears signals, and a signal may end the process.
pub fn run(words: Vec<OsString>) -> u8 {
    let command = flags::command();
    let parsed = command.clone().try_get_matches_from(&words);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Where it cannot be written, the exit code has to do.
            let error = answered(error);
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(EXIT_CONFIG);
        }
    };
    let given = flags::given(&command, &matches);
    match run_command(&cli, &matches, (command_line(&words), given)) {
        Ok(code) => code,
        Err(error) => {
            complain(&error.to_string());
            error.exit_code()
        }
    }
}

/// An error about a flag or a command that earlier versions took says what does the same.
fn answered(mut error: clap::Error) -> clap::Error {
    let (place, kind) = match error.kind() {
        ErrorKind::UnknownArgument => (Place::Flag, ContextKind::InvalidArg),
        ErrorKind::InvalidSubcommand => (Place::Command, ContextKind::InvalidSubcommand),
        _ => return error,
    };
    let word = error.get(kind).map(ToString::to_string).unwrap_or_default();
    if let Some(instead) = instead(place, word.trim_start_matches('-')) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![instead.into()]),
        );
    }
    error
}

/// One line on standard error. Where that cannot be written the exit code has to do.
fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "pleach: {line}");
}

/// The line as it was typed, without the folder of the program and without flags that no result depends on, so that two
/// reports of one configuration are the same bytes. What is not UTF-8 is shown as far as it is.
fn command_line(words: &[OsString]) -> String {
    let mut line = vec!["pleach".to_string()];
    let mut words = words
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        match word.split('=').next().unwrap_or_default() {
            "--out" | "--json" | "--threads" if !word.contains('=') => drop(words.next()),
            "--out" | "--json" | "--threads" | "--quiet" | "-q" | "--resume" | "--force" => {}
            _ => line.push(word),
        }
    }
    line.join(" ")
}

/// The value of a flag of the command that was called, if that has such a flag. Units of a sweep have threads and results of their own.
fn of_flag<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, flag: &str) -> Option<T> {
    let mut called = matches;
    while let Some((name, inner)) = called.subcommand() {
        if name == "sweep" {
            return None;
        }
        called = inner;
    }
    called.try_get_one::<T>(flag).ok().flatten().cloned()
}

/// Threads of the pool: the flag, else the variable, else all cores.
fn num_threads(flag: Option<u16>, variable: impl Fn(&str) -> Option<String>) -> Result<usize, Error> {
    if let Some(threads) = flag {
        return Ok(usize::from(threads));
    }
    for name in THREAD_VARIABLES {
        let Some(text) = variable(name).filter(|text| !text.trim().is_empty()) else {
            continue;
        };
        let refused = || {
            let allowed = format!("1 to {THREADS_MAX}, or 0 for all cores");
            Error::config(name, &text, allowed, "Unset it, or give --threads.")
        };
        match text.trim().parse::<u16>() {
            Ok(0) => break,
            Ok(threads) if threads <= THREADS_MAX => return Ok(usize::from(threads)),
            _ => return Err(refused()),
        }
    }
    Ok(std::thread::available_parallelism().map_or(1, usize::from))
}

/// Exit code of a command that a signal ends at once: a unit is worth another try, anything else says by what it ended.
fn exit_code_when_stopped(command: Option<&Command>, signal: i32) -> u8 {
    match command {
        Some(Command::Sweep(args)) if matches!(args.command, SweepCommand::Unit(_)) => EXIT_AGAIN,
        _ => exit_code_of_signal(signal),
    }
}

/// Hears SIGINT and SIGTERM in a thread of its own. Where a run listens it ends by itself; else the program ends here.
#[cfg(unix)]
fn hear_signals(stop: &Arc<Stop>, command: Option<&Command>) -> Result<(), Error> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let failed = |error: io::Error| Error::Failed(format!("cannot listen for signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (stop, codes) = (
        Arc::clone(stop),
        [SIGINT, SIGTERM].map(|signal| (signal, exit_code_when_stopped(command, signal))),
    );
    let hear = move || {
        for signal in signals.forever() {
            if stop.ask(signal) {
                continue;
            }
            let code = codes.iter().find(|(known, _)| *known == signal);
            let code = code.map_or(exit_code_of_signal(signal), |(_, code)| *code);
            let again = if code == EXIT_AGAIN {
                " (worth another try)"
            } else {
                ""
            };
            complain(&format!(
                "stopped by {}; every file is whole, and what keeps checkpoints goes on from its newest{again}",
                signal_name(signal)
            ));
            std::process::exit(i32::from(code));
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(hear).map(drop).map_err(failed)
}

#[cfg(not(unix))]
fn hear_signals(_: &Arc<Stop>, _: Option<&Command>) -> Result<(), Error> {
    Ok(())
}

fn run_command(
    cli: &Cli,
    matches: &ArgMatches,
    (command_line, given): (String, Vec<String>),
) -> Result<u8, Error> {
    let variable = |name: &str| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
    rayon::ThreadPoolBuilder::new()
        .num_threads(num_threads(of_flag(matches, "threads"), variable)?)
        .build_global()
        .map_err(|error| Error::Failed(format!("cannot start threads: {error}")))?;
    let stop = Arc::new(Stop::default());
    hear_signals(&stop, cli.command.as_ref())?;
    let (out, nowhere) = (&mut io::stdout(), &mut io::sink());
    let json: Option<PathBuf> = of_flag(matches, "json");
    let is_data = json.as_deref().is_some_and(is_standard_output);
    let (print, data): (&mut dyn Write, &mut dyn Write) =
        if is_data { (nowhere, out) } else { (out, nowhere) };
    let began = Instant::now();
    let mut context = Context {
        command_line,
        given,
        clock: &|| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64())
        },
        stopwatch: &|| began.elapsed(),
        print,
        data,
        bars,
        stop,
    };
    let Some(command) = &cli.command else {
        if let Some(folder) = &cli.generate {
            manual::generate(folder, &mut context)?;
        }
        return Ok(EXIT_DONE);
    };
    match command {
        Command::Run(args) => site_run::run(args, &mut context)?,
        Command::Quickstart(args) => quickstart::run(args, &mut context)?,
        Command::Train(args) => train::run(args, &mut context)?,
        Command::Calibrate(args) => calibrate::run(args, &mut context)?,
        Command::Export(args) => export::run(args, &mut context)?,
        Command::Index(args) => index::run(args, &mut context)?,
        Command::Distill(args) => distill::run(args, &mut context)?,
        Command::Evaluate(args) => evaluate::run(args, &mut context)?,
        Command::Verify(args) => verify::run(args, &mut context)?,
        Command::Watch(args) => watch::run(args, &mut context)?,
        Command::Explain(args) => explain::run(args, &mut context)?,
        Command::Own(own) => (own.command.run)(&own.given, &mut context)?,
        Command::Policies(args) => policies::run(args, &mut context)?,
        Command::Workload(args) => workload::run(args, &mut context)?,
        Command::Twin(args) => twin::run(args, &mut context)?,
        Command::When(args) => when::run(args, &mut context)?,
        Command::Report(args) => report::run(args, &mut context)?,
        Command::Cluster(args) => cluster::run(args, &mut context)?,
        Command::Sweep(args) => {
            return sweep::dispatch(
                &args.command,
                &sweep_unit::check,
                &|spec| sweep_unit::work(spec, args.command.out()),
                variable,
                context.print,
            );
        }
    }
    Ok(EXIT_DONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_the_thread_pool_is_bounded_as_the_flag_is() {
        let of = |flag, text: Option<&str>| {
            let variable = |name: &str| text.filter(|_| name == THREAD_VARIABLES[0]).map(str::to_string);
            num_threads(flag, variable)
        };
        assert_eq!(of(None, Some("3")).unwrap(), 3);
        assert_eq!(of(Some(2), Some("3")).unwrap(), 2, "the flag wins");
        assert_eq!(of(None, Some("0")).unwrap(), of(None, None).unwrap());
        assert_eq!(of(None, Some(" ")).unwrap(), of(None, None).unwrap());
        for text in ["1025", "100000000", "-1", "many"] {
            let said = of(None, Some(text)).unwrap_err().to_string();
            assert!(
                said.contains(&format!("RAYON_NUM_THREADS = {text}")) && said.contains("1 to 1024"),
                "{said}"
            );
        }
    }
}
