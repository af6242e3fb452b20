//! `pleach distill guard`, `check` and `ablate`: flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::RunArgs;
use super::evaluate::{SchedulingFlags, WorkloadFlags};

/// Simulates a tree without a guard and under several, on the same lists: what the longest wait or the tenants' fairness becomes, and
/// what that costs. Under a guard against waiting the first overdue job by arrival comes before everything else; under a floor the
/// tenant that holds least of its quota, below that share. Where its job does not fit, GPUs are held back for it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill guard runs/mine/tree.json
  pleach distill guard tree.json --workload Pleach/PhillyGang-v1 --after 6h,12h,1d --lists 8
  pleach distill guard tree.json --write 2days      and put that guard into the file
  pleach distill guard tree.json --workload Pleach/HeliosTenants-v1 --floor 0.25,0.5,0.75

In the folder: guard.json, guard.md, guard.html (longest wait against average JCT).")]
pub struct GuardArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Times after which a job is overdue, 1min to 3years, repeated or with commas [default: 1h,3h,6h,12h,1d,2d,4d,8d; none with
    /// --floor]
    #[arg(long, value_name = "TIME", value_delimiter = ',', action = ArgAction::Append, value_parser = humantime::parse_duration)]
    pub after: Vec<Duration>,
    /// Shares of its quota below which a tenant comes first, above 0 to 1, repeated or with commas
    #[arg(long, value_name = "SHARE", value_delimiter = ',', action = ArgAction::Append)]
    pub floor: Vec<f64>,
    /// Put the floor of this share into the file, in place of what it has; the table shows it too
    #[arg(long, value_name = "SHARE")]
    pub write_floor: Option<f64>,
    /// Put the guard with this time into the file, in place of what it has; the table shows it too
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub write: Option<Duration>,
    /// Lists as long as the task's; half as many four times as long
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub lists: u16,
    /// Policies to show beside, repeated or with commas
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append, default_value = "fifo,easy,gpu-time-reserve")]
    pub against: Vec<String>,
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

/// Sets a tree that was edited beside the version before: lines of its text that are new or gone, certificates with another
/// verdict, and both versions simulated on the same lists (as long, longer, low loads). Certificates of the edited file are not
/// believed, but made anew.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill check mine.json --before runs/mine/tree.json
  pleach distill check mine.json --before tree.json --workload Pleach/PhillyGang-v1 --lists 32

A `raw` threshold, a score, a tie key, a guard: change it in the file, then check. docs/policy-file.md, Editing by hand.")]
pub struct CheckArgs {
    /// The policy file that was edited
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The version before
    #[arg(long, value_name = "FILE")]
    pub before: PathBuf,
    /// Where both are run.
    #[command(flatten)]
    pub parts: PartsArgs,
}

/// Runs a tree without each of its leaves, and with each of its features shuffled, on the same lists: what average JCT becomes. Leaves
/// and features that cost nothing are candidates for an edit (`pleach distill check`).
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill ablate runs/mine/tree.json
  pleach distill ablate tree.json --workload Pleach/PhillyGang-v1 --lists 32")]
pub struct AblateArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where it is run.
    #[command(flatten)]
    pub parts: PartsArgs,
}

/// Where `check` and `ablate` run trees, and where the figures go.
#[derive(Args, Clone, Debug)]
pub struct PartsArgs {
    /// Lists of each part; half as many of longer ones
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub lists: u16,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingFlags,
    /// Root of all randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Also write the figures as JSON to this file; - for standard output, without the table
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Threads to use [default: all cores]. The result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Say only what goes wrong
    #[arg(long, short)]
    pub quiet: bool,
}
