//! `pleach bench`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use pleach_experiments::command::flags::ReportFlags;
use pleach_experiments::evaluate::flag_values;

/// Measures speed on this machine. The only command whose output depends on the clock.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach bench                                          everything, some seconds each
  pleach bench --only simulator,tree --seconds 10
  pleach bench --only env --scaling                     the environment, then the long curve
  pleach bench --only env --queues 100000               the environment, then what long queues cost
  pleach bench --json bench.json                        for tracking over commits
  pleach bench --only devices                           from which minibatch on a GPU pays

Build with --release first; numbers of a debug build mean nothing.")]
pub struct BenchArgs {
    /// Parts to measure, repeated or with commas [default: all but devices]
    #[arg(long, value_enum, value_delimiter = ',', action = ArgAction::Append, value_name = "PART")]
    pub only: Vec<BenchPart>,
    /// Time to spend on each part, seconds
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = flag_values::positive)]
    pub seconds: f64,
    /// Environments that step together
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = flag_values::whole::<u32>(1..=65_536))]
    pub num_envs: u32,
    /// Also the scaling curve: 10,000 jobs on 1,000 GPUs up to 1,000,000 on 100,000, minutes in all
    #[arg(long)]
    pub scaling: bool,
    /// Also every heuristic and a reference network on ever longer lists for 1,000 GPUs, up to so many jobs, at loads 0.9 and 5
    #[arg(long, value_name = "JOBS", value_parser = flag_values::whole::<u32>(10_000..=10_000_000))]
    pub queues: Option<u32>,
    /// The Philly list to simulate [default: a generated one like it]
    #[arg(long, value_name = "FILE")]
    pub philly: Option<PathBuf>,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum BenchPart {
    /// Jobs per second of whole simulations
    Simulator,
    /// Steps per second of the vectorised environment
    Env,
    /// Frames per second of PPO
    Ppo,
    /// Time of one decision of a tree
    Tree,
    /// Time of one plan of every planner
    Planners,
    /// Decisions per second of gradients, on every device that is there
    Devices,
}
