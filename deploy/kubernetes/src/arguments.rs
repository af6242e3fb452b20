//! The arguments of the program.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use pleach_daemon::Drive;
use pleach_daemon::log::LogForm;
use pleach_daemon::operator::{CaptureArgs, DiffArgs, HandBackArgs, ReplayArgs, RunArgs};

/// Drives a Kubernetes cluster with a scheduling policy.
///
/// Begin with `pleach-kubernetes check` and `pleach-kubernetes run --policy tree.json --shadow`: it decides and writes down, and
/// touches nothing. Then `--live`, with the webhook in one namespace. `hand-back` gives every pod that waits back to kube-scheduler.
/// The API server is found by the ServiceAccount of the pod that this runs in, or by KUBECONFIG.
#[derive(Debug, Parser)]
#[command(name = "pleach-kubernetes", version)]
pub struct Cli {
    /// The configuration file (TOML); every key has a default.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of log, status and memory, instead of the configuration's.
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// How much of the policy is carried out, instead of the configuration's: hold, or order beside Kueue.
    #[arg(long, global = true, value_enum)]
    pub drive: Option<Drive>,
    /// How messages are written to standard error.
    #[arg(long = "log", global = true, value_enum, default_value = "text")]
    pub log_form: LogForm,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Observe, decide and carry out, round after round, until SIGTERM. SIGHUP reads the policy again.
    Run(RunArgs),
    /// How the last round went. Exit code 1 where it is older than a minute or failed; a probe of the kubelet asks this.
    Status,
    /// Why a job was started, stopped or put off: its last decisions, from the log.
    Explain(OfJob),
    /// Why a job does not run: from the API server as it is now.
    WhyNot(WhyNot),
    /// Lift the gates of all pods that are held, in the order of arrival, and leave their places to kube-scheduler.
    HandBack(HandBackArgs),
    /// Decide the rounds of a log again and compare.
    Replay(ReplayArgs),
    /// What another policy would have decided in the rounds of a log: how many, and which starts earlier, later or elsewhere.
    Diff(DiffArgs),
    /// Write a log's jobs as a list for the simulator, `NAME.csv` with `NAME.cluster.toml`: for `pleach evaluate --workload
    /// NAME.csv`, and to train and distil on what came here.
    Capture(CaptureArgs),
    /// Check settings, certificates, policy, the way to the API server and the rights there. Changes nothing.
    Check(Check),
}

#[derive(Debug, Args)]
pub struct OfJob {
    /// One of its pods as NAMESPACE/POD, or the id that the log has.
    pub job: String,
}

#[derive(Debug, Args)]
pub struct WhyNot {
    /// One of its pods as NAMESPACE/POD, or the id that the log has.
    pub job: String,
    /// The policy, as for `run`.
    #[arg(long)]
    pub policy: String,
}

#[derive(Debug, Args)]
pub struct Check {
    /// The policy, as for `run`; none: it is not checked.
    #[arg(long)]
    pub policy: Option<String>,
}
