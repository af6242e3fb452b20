//! `pleach distill`: flags.

use clap::Args;
use serde::Serialize;

use super::RunArgs;
use super::evaluate::{SchedulingArgs, WorkloadSource};

/// Prunes a teacher into one decision tree. Sizes and cuts are chosen by simulated performance on validation seeds,
/// and the winner is reported on test seeds that nothing was chosen by.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach distill --teacher runs/mine                    the network of a training run
  pleach distill --teacher srtf --leaves 8              a tree that imitates a heuristic
  pleach distill --teacher runs/mine --leaves 32 --depth 8 --iterations 5 --out runs/mine-tree

In the folder: tree.json (the policy file, for evaluate and for the scheduler), tree.txt (to read), report.html.")]
pub struct DistillArgs {
    /// Whom to learn from: a training run, a policy file, or a heuristic's name
    #[arg(long, value_name = "NAME|PATH")]
    pub teacher: String,
    /// Leaves, at most
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub leaves: u16,
    /// Questions from the root to a leaf, at most
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub depth: u8,
    /// Rounds of DAgger: the tree drives, the teacher labels what it meets
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub iterations: u16,
    /// Decision points to label in each round
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pub samples: u32,
    /// Seeds that cuts are chosen by
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub validation_seeds: u32,
    /// Seeds that the result is reported on
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub test_seeds: u32,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingArgs,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}
