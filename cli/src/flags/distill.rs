//! `pleach distill`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use serde::Serialize;

use super::RunArgs;
use super::evaluate::{SchedulingFlags, WorkloadFlags};

/// Prunes a teacher into one decision tree. Size and cuts are chosen by simulated performance, and the
/// winner is reported on test seeds that nothing was chosen by.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach distill --teacher runs/mine                    the network of a training run
  pleach distill --teacher srtf --leaves 8              a tree that imitates a heuristic
  pleach distill --teacher runs/mine --leaves 8,16,32 --rounds 5 --out runs/mine-tree
  pleach distill --teacher runs/mine --objective avg_jct_s=1,p99_jct_s=0.2
                                                        a tree that is chosen by its tail too

In the folder: tree.json (the policy file, for evaluate and for the scheduler), tree.txt (to read), report.html.")]
pub struct DistillArgs {
    /// Whom to learn from: a training run, a policy file, or a heuristic's name
    #[arg(long, value_name = "NAME|PATH")]
    pub teacher: String,
    /// Configuration in TOML; unknown keys are refused; flags override it [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Sizes to try, in leaves, repeated or with commas [default: 4,8,16,32]
    #[arg(long, value_name = "N", value_delimiter = ',', action = ArgAction::Append, value_parser = clap::value_parser!(u16).range(2..=256))]
    pub leaves: Vec<u16>,
    /// Questions from the root to a leaf, at most [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub depth: Option<u16>,
    /// Rounds of DAgger after the teacher's own: the tree drives, the teacher labels what it meets [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=100))]
    pub rounds: Option<u16>,
    /// Episodes to play in each round [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub episodes: Option<u32>,
    /// What trees are compared by: metrics and their weights as in the objective of train, repeated or with commas
    /// [default: avg_jct_s=1]
    #[arg(long, value_name = "METRIC=WEIGHT", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip)]
    pub objective: Vec<String>,
    /// Seeds that the result is reported on
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub test_seeds: u32,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingFlags,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}
