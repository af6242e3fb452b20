//! The arguments of the program.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use pleach_daemon::log::LogForm;

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
    /// How messages are written to standard error.
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub log: LogForm,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
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
pub struct Run {
    /// A tree or an index (`.json`), a network (`.ckpt`), or the name of a heuristic or of a dealer (`index`, `las-deal`).
    #[arg(long)]
    pub policy: String,
    /// Decide and write down; touch nothing, hold nothing.
    #[arg(long)]
    pub shadow: bool,
    /// Hold, place and release pods.
    #[arg(long)]
    pub live: bool,
    /// End after so many rounds.
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
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
pub struct HandBack {
    /// Also while a controller works on this state folder; the webhook goes on holding new pods.
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct Check {
    /// The policy, as for `run`; none: it is not checked.
    #[arg(long)]
    pub policy: Option<String>,
}
