//! The program's arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use pleach_daemon::log::LogForm;
use pleach_daemon::operator::{CaptureArgs, DiffArgs, HandBackArgs, ReplayArgs, RunArgs};
use pleach_scheduler::ExternalId;

/// Drives a Slurm cluster with a scheduling policy.
///
/// Begin with `pleach-scheduler run --policy tree.json --shadow`: it decides and writes down, and touches nothing. Then
/// `--live` on one partition. `hand-back` takes the order away.
#[derive(Debug, Parser)]
#[command(name = "pleach-scheduler", version)]
pub struct Cli {
    /// The configuration file (TOML); every key has a default.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of log, status and memory, instead of the configuration's.
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The partition to drive, instead of the configuration's or Slurm's default one.
    #[arg(long, global = true, value_name = "NAME")]
    pub partition: Option<String>,
    /// How messages are written to standard error.
    #[arg(long = "log", global = true, value_enum, default_value = "text")]
    pub log_form: LogForm,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Observe, decide and carry out, round after round, until SIGTERM. SIGHUP reads the policy again, not the configuration.
    Run(RunArgs),
    /// How the last round went. Exit code 1 where it is older than a minute or failed.
    Status,
    /// Why a job was started, stopped or put off: its last decisions, from the log.
    Explain(OfJob),
    /// Why a job does not run: from Slurm as it is now.
    WhyNot(WhyNot),
    /// Take the order away: all factors are 0 again, and nodes that were named are lifted.
    HandBack(HandBackArgs),
    /// Decide the rounds of a log again and compare.
    Replay(ReplayArgs),
    /// What another policy would have decided in the rounds of a log: how many, and which starts earlier, later or elsewhere.
    Diff(DiffArgs),
    /// Write a log's jobs as a list for the simulator, `NAME.csv` with `NAME.cluster.toml`: for `pleach evaluate --workload
    /// NAME.csv`, and to train and distil on what came here.
    Capture(CaptureArgs),
}

#[derive(Debug, Args)]
pub struct OfJob {
    /// Its number, or ARRAY_TASK.
    pub job: ExternalId,
}

#[derive(Debug, Args)]
pub struct WhyNot {
    /// Its number, or ARRAY_TASK.
    pub job: ExternalId,
    /// The policy, as for `run`.
    #[arg(long)]
    pub policy: String,
}
