//! `pleach distill stability`: flags.

use clap::{ArgAction, Args};
use serde::Serialize;

use super::RunArgs;
use super::evaluate::{SchedulingFlags, WorkloadFlags};

/// Distils one teacher several times, each time from another seed (other episodes, other lists to choose by), and says how much the
/// trees differ: on how many decisions each two choose alike, which features they read, and what each is worth beside the teacher.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach distill stability --teacher runs/mine
  pleach distill stability --teacher net.ckpt --workload Pleach/PhillyGang-v1 --fits 10 --leaves 8
  pleach distill stability --teacher net.ckpt --lists 8 --out runs/stable

In the folder: stability.json, stability.md, trees/fit-N.json. Where fits disagree much and are worth the same, take the one that
agrees most with the others; where they are not worth the same, give more episodes.")]
pub struct StabilityArgs {
    /// Whom to learn from: a training run, a policy file, or a heuristic's name
    #[arg(long, value_name = "NAME|PATH")]
    pub teacher: String,
    /// How often to fit, each time with a seed drawn from --seed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=100))]
    pub fits: u16,
    /// Sizes in leaves to grow and choose among before pruning, repeated or with commas [default: 4,8,16,32]
    #[arg(long, value_name = "N", value_delimiter = ',', action = ArgAction::Append, value_parser = clap::value_parser!(u16).range(2..=256))]
    pub leaves: Vec<u16>,
    /// Lists of each part; half as many of longer ones
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub lists: u16,
    /// Rounds of DAgger after the teacher's own [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=100))]
    pub rounds: Option<u16>,
    /// Episodes to play in each round [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub episodes: Option<u32>,
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
