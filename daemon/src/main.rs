//! The program `pleach-scheduler`: reads arguments and the clock, hears signals, calls the library.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args, Parser, Subcommand};
use pleach_daemon::capture::Capture;
use pleach_daemon::config::EstimatesFrom;
use pleach_daemon::log::{LogForm, one_line};
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::source::replay::Replay;
use pleach_daemon::source::slurm as source;
use pleach_daemon::state::{self, State};
use pleach_daemon::{Error, Service, Settings, apply, fleet, lua, why_not};
use pleach_scheduler::ExternalId;

/// Drives a Slurm cluster with a scheduling policy.
///
/// Begin with `pleach-scheduler run --policy tree.json --shadow`: it decides and writes down, and touches nothing. Then
/// `--live` on one partition. `hand-back` gives every waiting job back to Slurm's own scheduler.
#[derive(Debug, Parser)]
#[command(name = "pleach-scheduler", version)]
struct Cli {
    /// The configuration file (TOML); every key has a default.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of log, status and memory, instead of the configuration's.
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The partition to drive, instead of the configuration's or Slurm's default one.
    #[arg(long, global = true, value_name = "NAME")]
    partition: Option<String>,
    /// How messages are written to standard error.
    #[arg(long = "log", global = true, value_enum, default_value = "text")]
    log_form: LogForm,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Observe, decide and carry out, round after round, until SIGTERM. SIGHUP reads the policy again.
    Run(Run),
    /// How the last round went. Exit code 1 where it is older than a minute or failed.
    Status,
    /// Why a job was started, stopped or put off: its last decisions, from the log.
    Explain(OfJob),
    /// Why a job does not run: from Slurm as it is now.
    WhyNot(WhyNot),
    /// Release all jobs that are held for the daemon, in the order of arrival, to Slurm's own scheduler.
    HandBack(HandBack),
    /// Print the `job_submit.lua` that holds jobs at submission.
    Lua(Lua),
    /// Decide the rounds of a log again and compare.
    Replay(ReplayArgs),
    /// Write a log's jobs as a list for the simulator, `NAME.csv` with `NAME.cluster.toml`: for `pleach evaluate --workload
    /// NAME.csv`, and to train and distil on what came here.
    Capture(CaptureArgs),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("mode").required(true).args(["shadow", "live"])))]
struct Run {
    /// A tree or an index (`.json`), the folder of a bundle, a network (`.ckpt`), or a name: a heuristic (`sjf`,
    /// `easy`) or a dealer (`index`, `las-deal`, `belief-deal`, `srtf-deal`, `rate-deal`), which deals the GPUs of all jobs anew.
    #[arg(long)]
    policy: String,
    /// Decide and write down; touch nothing.
    #[arg(long)]
    shadow: bool,
    /// Hold, place and release jobs.
    #[arg(long)]
    live: bool,
    /// End after so many rounds.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
}

#[derive(Debug, Args)]
struct OfJob {
    /// Its number, or ARRAY_TASK.
    job: ExternalId,
}

#[derive(Debug, Args)]
struct WhyNot {
    /// Its number, or ARRAY_TASK.
    job: ExternalId,
    /// The policy, as for `run`.
    #[arg(long)]
    policy: String,
}

#[derive(Debug, Args)]
struct HandBack {
    /// Also while a daemon works, which will hold the jobs again.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct Lua {
    /// Hold nothing once the daemon was silent for so long, s.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    patience_s: u32,
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// The log, `decisions.jsonl`.
    log: PathBuf,
    /// The policy, as for `run`.
    #[arg(long)]
    policy: String,
}

#[derive(Debug, Args)]
struct CaptureArgs {
    /// The log, `decisions.jsonl`; several in the order in which they were written.
    #[arg(required = true)]
    logs: Vec<PathBuf>,
    /// The list to write, NAME.csv.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.log_form.start();
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{}", one_line(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Text on standard output; a reader that has gone is none of our errors.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{}", text.trim_end());
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

fn dispatch(cli: &Cli) -> Result<ExitCode, Error> {
    let settings = settings(cli)?;
    match &cli.command {
        Command::Run(args) => run(settings, args),
        Command::Status => status(&settings),
        Command::Explain(args) => explain(&settings, args.job),
        Command::WhyNot(args) => not_running(&settings, args),
        Command::HandBack(args) => hand_back(&settings, args),
        Command::Lua(args) => script(&settings, args),
        Command::Replay(args) => replay(&settings, args),
        Command::Capture(args) => capture(&settings, args),
    }
}

fn partition(settings: &Settings) -> Result<String, Error> {
    match &settings.partition {
        Some(name) => Ok(name.clone()),
        None => source::default_partition(&settings.commands()),
    }
}

/// Flags that signals raise: to end, to read the policy again.
fn signals() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        for (signal, flag) in [(SIGTERM, &stop), (SIGINT, &stop), (SIGHUP, &reload)] {
            if let Err(error) = signal_hook::flag::register(signal, Arc::clone(flag)) {
                tracing::error!("signal {signal} cannot be heard: {error}");
            }
        }
    }
    (stop, reload)
}

fn run(settings: Settings, args: &Run) -> Result<ExitCode, Error> {
    let (stop, reload) = signals();
    let tick = Duration::from_secs_f64(settings.tick_s);
    let mut service = Service::new(settings, &args.policy, args.shadow)?;
    let status = service.status();
    let mode = if args.shadow {
        "decides and touches nothing"
    } else {
        "drives"
    };
    tracing::info!(
        "{} {mode} partition {} ({} rounds a minute)",
        status.policy,
        status.partition,
        60.0 / tick.as_secs_f64()
    );
    for warning in &status.warnings {
        tracing::warn!("{}", one_line(warning));
    }
    let mut last = Vec::new();
    loop {
        let began = Instant::now();
        if reload.swap(false, Ordering::Relaxed) {
            match service.reload() {
                Ok(()) => tracing::info!("the policy was read again: {}", service.status().policy),
                Err(error) => tracing::error!("the policy stays: {}", one_line(&error.to_string())),
            }
        }
        let notes = service.round(now_s());
        // What goes on from round to round is said once.
        for text in notes.iter().filter(|text| !last.contains(*text)) {
            tracing::warn!("{}", one_line(text));
        }
        last = notes;
        let is_last = args
            .rounds
            .is_some_and(|rounds| service.status().num_rounds >= rounds);
        while began.elapsed() < tick && !is_last {
            if stop.load(Ordering::Relaxed) || reload.load(Ordering::Relaxed) {
                break;
            }
            thread::sleep(Duration::from_millis(20).min(tick.saturating_sub(began.elapsed())));
        }
        if stop.load(Ordering::Relaxed) || is_last {
            let num = service.status().num_waiting;
            if !args.shadow && num > 0 {
                tracing::warn!(
                    "ends; {num} jobs stay held: start it again, or run `pleach-scheduler hand-back`"
                );
            }
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn status(settings: &Settings) -> Result<ExitCode, Error> {
    let status = state::read_status(&settings.state_dir)?;
    let age_s = now_s() - status.at_s;
    let mode = if status.is_shadow { "shadow" } else { "live" };
    let mut text = format!(
        "{} on partition {} ({mode}), process {}\nlast round {age_s} s ago: {} waiting, {} placed, {} left to Slurm\n\
         {} rounds, {} failed, {} by the fallback; {} starts and preemptions; {} lines of the log lost\n\
         last round: observe {:.1} ms, decide {:.1} ms, apply {:.1} ms",
        status.policy,
        status.partition,
        status.pid,
        status.num_waiting,
        status.num_placed,
        status.num_foreign,
        status.num_rounds,
        status.num_failed,
        status.num_fallbacks,
        status.num_starts,
        status.num_lines_lost,
        status.observe_s * 1e3,
        status.decide_s * 1e3,
        status.apply_s * 1e3,
    );
    if let Some(psi) = status.drift_psi {
        text += &format!("\ndrift: stability index {psi:.3}");
    }
    for warning in &status.warnings {
        text += &format!("\nwarning: {warning}");
    }
    if !status.last_error.is_empty() {
        text += &format!("\nlast error: {}", status.last_error);
    }
    say(&text);
    let well = age_s <= 60 && status.last_error.is_empty();
    Ok(if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn explain(settings: &Settings, job: ExternalId) -> Result<ExitCode, Error> {
    let rounds = state::rounds_of(&settings.state_dir, job, 5)?;
    if rounds.is_empty() {
        say(&format!(
            "The log has no decision about job {job}; `why-not {job}` tells why it does not run."
        ));
        return Ok(ExitCode::FAILURE);
    }
    for record in rounds {
        let told = record.told(job, &format!("job {job}"));
        told.iter().for_each(|text| say(text));
    }
    Ok(ExitCode::SUCCESS)
}

fn not_running(settings: &Settings, args: &WhyNot) -> Result<ExitCode, Error> {
    let mut loaded = Loaded::of(&args.policy, fleet::capabilities(&settings.rounds()))?;
    let mut snapshot = source::observe(
        &settings.commands(),
        &partition(settings)?,
        &settings.share_nodes(),
        now_s(),
    )?;
    let mut memory = read_memory(settings);
    memory.observe(&snapshot);
    if settings.estimates.from == EstimatesFrom::History {
        let (mut history, complaint) = state::read_history(&settings.state_dir, &settings.estimates);
        complaint
            .iter()
            .for_each(|text| tracing::warn!("{}", one_line(text)));
        history.observe(&mut snapshot, &memory, &BTreeMap::new(), &settings.rounds());
    }
    say(&why_not::answer(
        &snapshot,
        &memory,
        &mut loaded,
        &settings.rounds(),
        args.job,
    )?);
    Ok(ExitCode::SUCCESS)
}

/// What a daemon remembers, read without disturbing it.
fn read_memory(settings: &Settings) -> Memory {
    let text = std::fs::read_to_string(settings.state_dir.join("memory.json"));
    text.ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

fn hand_back(settings: &Settings, args: &HandBack) -> Result<ExitCode, Error> {
    let _lock = match State::take(&settings.state_dir, settings.log_bytes_max) {
        Ok(state) => Some(state),
        Err(error @ Error::Busy { .. }) if !args.force => return Err(error),
        // The queue is handed back whatever is wrong with our own folder.
        Err(_) => None,
    };
    let (num, refused) = apply::slurm::hand_back(&settings.commands())?;
    say(&format!("{num} jobs were given back to Slurm"));
    for text in &refused {
        tracing::warn!("{}", one_line(text));
    }
    Ok(if refused.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn script(settings: &Settings, args: &Lua) -> Result<ExitCode, Error> {
    let default = source::default_partition(&settings.commands()).ok();
    let partition = partition(settings)?;
    let is_default = default.as_ref() == Some(&partition);
    let heartbeat = settings.state_dir.join("heartbeat");
    say(&lua::script(
        &partition,
        is_default,
        &heartbeat,
        args.patience_s,
        !settings.share_nodes.is_empty(),
    )?);
    Ok(ExitCode::SUCCESS)
}

fn capture(settings: &Settings, args: &CaptureArgs) -> Result<ExitCode, Error> {
    let mut capture = Capture::new(settings.rounds());
    for log in &args.logs {
        for record in Replay::open(log)? {
            capture.read(&record?);
        }
    }
    say(&capture.write(&args.to)?);
    Ok(ExitCode::SUCCESS)
}

fn replay(settings: &Settings, args: &ReplayArgs) -> Result<ExitCode, Error> {
    let rounds = settings.rounds();
    let capabilities = fleet::capabilities(&rounds);
    let mut policy = Loaded::of(&args.policy, capabilities)?;
    let mut fallback = policy.fallback(&rounds, capabilities)?;
    let (mut num, mut num_same, mut num_fallback) = (0_u64, 0_u64, 0_u64);
    for record in Replay::open(&args.log)? {
        let record = record?;
        if record.fallback.is_some() {
            num_fallback += 1;
            continue;
        }
        if let (Some(dealing), Some(turn)) = (policy.dealing_mut(), record.turn) {
            dealing.told(turn);
        }
        let mut deciders = Deciders {
            policy: &mut policy,
            fallback: &mut fallback,
        };
        let plan = round::plan(
            &record.snapshot,
            &record.memory,
            &mut deciders,
            &settings.rounds(),
            record.is_shadow,
            &mut || false,
        )?;
        num += 1;
        if round::is_same(&plan.decisions, &record.decisions) {
            num_same += 1;
        } else {
            say(&format!("round {} is decided otherwise", record.round));
        }
    }
    say(&format!(
        "{num_same} of {num} rounds are decided alike; {num_fallback} by the fallback were left out"
    ));
    Ok(if num == num_same {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
