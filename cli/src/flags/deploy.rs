//! `pleach distill seal`, `drift` and `bundle`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_scheduler::tree::{PSI_LIMIT_DEFAULT, WINDOW_DECISIONS, WINDOW_DEFAULT};

use super::evaluate::{SchedulingFlags, WorkloadFlags};
use super::{RunArgs, number};

/// Makes a tree ready to be deployed: puts certificates, golden vectors and the fallback into its file. What decides is not
/// changed. Golden vectors are rows on and beside every threshold with what the tree says of them, as one hash: whoever reads the
/// file checks it. With --visits also how often candidates end in each leaf on the lists of --workload, by which the daemon
/// tells drift.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill seal runs/mine/tree.json
  pleach distill seal tree.json --fallback gpu-time-reserve
  pleach distill seal tree.json --fallback gpu-time-reserve --gpu-types-max 1
                            which decides on clusters of several GPU types too
  pleach distill seal tree.json --visits --workload jobs.csv --from-day 0 --days 28

Seal again after every edit: docs/policy-file.md, Sealing.")]
pub struct SealArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The heuristic that decides where the tree cannot, in a daemon whose settings name none [default: what the file says]
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
    /// Most GPU types of a cluster on which the tree decides; on others its fallback does [default: what the file says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub gpu_types_max: Option<u32>,
    /// Record on the lists of --workload in which leaves candidates end [default: what the file has]
    #[arg(long)]
    pub visits: bool,
    /// Lists to record of each workload that is generated
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Root of all randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingFlags,
}

/// Simulates lists under a sealed tree and says how far what it is offered has moved from where it was judged: the stability index
/// of the last decisions, as the daemon's watch has it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill drift tree.json --workload jobs.csv --from-day 28
  pleach distill drift tree.json --workload Pleach/PhillyGang-v1 --load 0.5 --seeds 40 --window 1000

In the folder: drift.json, drift.md, drift.html (the index over decisions). docs/distilling.md, Drift, says what is much.")]
pub struct DriftArgs {
    /// A policy file with a tree and its visits
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Decisions of a window; it slides by a twentieth
    #[arg(long, value_name = "N", default_value_t = WINDOW_DEFAULT, value_parser = clap::value_parser!(u32).range(i64::from(WINDOW_DECISIONS.0)..=i64::from(WINDOW_DECISIONS.1)))]
    pub window: u32,
    /// Index above which a window has drifted
    #[arg(long, value_name = "PSI", default_value_t = PSI_LIMIT_DEFAULT, value_parser = number::positive)]
    pub limit: f64,
    /// Lists of each workload that is generated
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingFlags,
    /// Seed, output and machine.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Writes a folder with everything that a tree is deployed with: the policy file, the tree and its certificates in words, exports,
/// and a manifest with the SHA-256 of each file. The daemon takes the folder as its policy and refuses it where a file was
/// changed, is missing, or was added. The folder appears whole or not at all.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill bundle tree.json --out tree-2024-06
  pleach distill bundle tree.json --out tree-2024-06 --to c,python,onnx")]
pub struct BundleArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The folder, which is not there yet
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Exports to put into it, repeated or with commas: the forms of pleach export
    #[arg(long, value_name = "FORM", value_delimiter = ',')]
    pub to: Vec<String>,
    /// What the tree's sources are known by, for the manifest; free
    #[arg(long, value_name = "TEXT")]
    pub commit: Option<String>,
}
