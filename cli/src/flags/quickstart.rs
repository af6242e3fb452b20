//! `pleach quickstart`: flags.

use clap::Args;
use pleach_experiments::evaluate::flag_values;
use serde::Serialize;

use super::{EpisodeFlags, RunArgs};

/// Trains a small network, searches for a tree that schedules as well, compares both with the heuristics, and writes a report.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach quickstart                                     about three minutes on two cores
  pleach quickstart --updates 4 --num-jobs 60 --simulations 500      a smoke test
  pleach quickstart --env Pleach/PhillyGang-v1 --seed 1 --out runs/first

In the folder: report.html (read this first), summary.md, tree.txt, tree.json, network.ckpt, search.md (trees of other sizes),
results.csv, results.json, and the logs of training for TensorBoard. Training, choosing and reporting use seeds that have nothing in
common. Run times are known in training; the last tables are those where they are guessed from ended jobs.")]
pub struct QuickstartArgs {
    /// Environment to train and test in; `pleach workload` names them
    #[arg(long, value_name = "ID", default_value = "Pleach/GavelMultiRealistic-v2")]
    pub env: String,
    /// Play in the world of the papers: links, restarts and memory cost nothing of their own, speeds are known, nothing fails
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub as_published: bool,
    /// What its episodes are not as it has them.
    #[command(flatten)]
    #[serde(flatten)]
    pub episodes: EpisodeFlags,
    /// Updates to train for; 0 leaves the network at its clone of the best heuristic
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = flag_values::whole::<u64>(0..=1_000_000))]
    pub updates: u64,
    /// Leaves of the tree, at most
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = flag_values::whole::<u16>(2..=256))]
    pub leaves: u16,
    /// Lists to simulate in the search for the tree, at least
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = flag_values::whole::<u64>(1..=100_000_000))]
    pub simulations: u64,
    /// Held-out workloads to compare on
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = flag_values::whole::<u32>(1..=1000))]
    pub seeds: u32,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}
