//! The program `pleach-kubernetes`: reads arguments and the clock, hears signals, calls the library.

mod commands;
mod run;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use pleach_kubernetes::{Error, Settings};

/// Drives a Kubernetes cluster with a scheduling policy.
///
/// Begin with `pleach-kubernetes check` and `pleach-kubernetes run --policy tree.json --shadow`: it decides and writes down, and
/// touches nothing. Then `--live`, with the webhook in one namespace. `hand-back` gives every pod that waits back to kube-scheduler.
/// The API server is found by the ServiceAccount of the pod that this runs in, or by KUBECONFIG.
#[derive(Debug, Parser)]
#[command(name = "pleach-kubernetes", version)]
struct Cli {
    /// The configuration file (TOML); every key has a default.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of log, status and memory, instead of the configuration's.
    #[arg(long, global = true, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// How the log is written to standard error.
    #[arg(long, global = true, value_enum, default_value = "text")]
    log: Log,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Log {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Observe, decide and carry out, round after round, until SIGTERM. SIGHUP reads the policy again.
    Run(Run),
    /// How the last round went. Exit code 1 where it is older than a minute or failed; a probe of the kubelet asks this.
    Status,
    /// Why a job was started, stopped or put off: its last decisions, from the log.
    Explain(OfJob),
    /// Why a job does not run: from the API server as it is now.
    WhyNot(WhyNot),
    /// Lift the gates of all pods that are held, in the order of arrival, and leave their places to kube-scheduler.
    HandBack(HandBack),
    /// Check settings, certificates, policy, the way to the API server and the rights there. Changes nothing.
    Check(Check),
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("mode").required(true).args(["shadow", "live"])))]
struct Run {
    /// A tree (`.json`), a network (`.ckpt`) or the name of a heuristic.
    #[arg(long)]
    policy: String,
    /// Decide and write down; touch nothing, hold nothing.
    #[arg(long)]
    shadow: bool,
    /// Hold, place and release pods.
    #[arg(long)]
    live: bool,
    /// End after so many rounds.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
}

#[derive(Debug, Args)]
struct OfJob {
    /// One of its pods as NAMESPACE/POD, or the id that the log has.
    job: String,
}

#[derive(Debug, Args)]
struct WhyNot {
    /// One of its pods as NAMESPACE/POD, or the id that the log has.
    job: String,
    /// The policy, as for `run`.
    #[arg(long)]
    policy: String,
}

#[derive(Debug, Args)]
struct HandBack {
    /// Also while a controller works on this state folder; the webhook goes on holding new pods.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct Check {
    /// The policy, as for `run`; none: it is not checked.
    #[arg(long)]
    policy: Option<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false);
    match cli.log {
        Log::Text => log.with_ansi(false).init(),
        Log::Json => log.json().init(),
    }
    let result = settings(&cli).and_then(|settings| match &cli.command {
        Command::Run(args) => run::run(settings, args),
        Command::Status => commands::status(&settings),
        Command::Explain(args) => block_on(commands::explain(&settings, &args.job)),
        Command::WhyNot(args) => block_on(commands::why_not(&settings, args)),
        Command::HandBack(args) => block_on(commands::hand_back(&settings, args)),
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
    Ok(settings)
}

/// Text on standard output; a reader that has gone is none of our errors.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{}", text.trim_end());
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Runs to the end on this thread.
fn block_on<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::Access {
        reason: error.to_string(),
    })?;
    runtime.block_on(future)
}
