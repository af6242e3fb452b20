//! `pleach quickstart`: flags.

use clap::Args;
use serde::Serialize;

use super::RunArgs;
use super::number;

/// Trains a small network, prunes it into a tree, compares both with the heuristics, and writes a report.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach quickstart                                     a few minutes on a laptop
  pleach quickstart --env-steps 20000 --num-jobs 200    a smoke test
  pleach quickstart --workload gavel-multi --load 0.9 --seed 1 --out runs/first

In the folder: report.html (read this first), tree.txt, tree.json, checkpoint, results.csv, results.json.
The policies are compared on seeds that training never saw.")]
pub struct QuickstartArgs {
    /// Workload preset to train and test on; `pleach workload list` names them
    #[arg(long, value_name = "PRESET", default_value = "philly-like")]
    pub workload: String,
    /// Offered load
    #[arg(long, value_name = "LOAD", default_value_t = 0.9, value_parser = number::load)]
    pub load: f64,
    /// Jobs in an episode
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub num_jobs: u32,
    /// Decisions to train for
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pub env_steps: u64,
    /// Leaves of the tree, at most
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub leaves: u16,
    /// Held-out seeds to compare on
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}
