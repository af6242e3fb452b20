//! `pleach distill`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use pleach_distill::Monotone;
use serde::Serialize;

use super::RunArgs;
use super::deploy::{BundleArgs, DriftArgs, SealArgs};
use super::evaluate::{SchedulingFlags, WorkloadFlags};
use super::guard::{AblateArgs, CheckArgs, GuardArgs};
use super::stability::StabilityArgs;

/// Prunes a teacher into one decision tree, or searches for one in the simulator. Size and cuts are chosen by simulated
/// performance, and the winner is reported on test seeds that nothing was chosen by.
#[derive(Args, Clone, Debug, Serialize)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  pleach distill --teacher runs/mine                    the network of a training run
  pleach distill --teacher srtf --leaves 8              a tree that imitates a heuristic
  pleach distill --teacher runs/mine --leaves 8,16,32 --rounds 5 --out runs/mine-tree
  pleach distill --teacher runs/mine --monotone waiting,estimate
                                                        a tree of which both are certain; `pleach distill certify` proves it
  pleach distill --teacher runs/mine --objective avg_jct_s=1,p99_jct_s=0.2
                                                        a tree that is chosen by its tail too
  pleach distill --search --workload Pleach/GavelMulti-v1
                                                        a tree that is found in the simulator, without a teacher
  pleach distill --search --teacher runs/mine --start mine.json
                                                        the same from a teacher's trees and from one of your own

In the folder: tree.json (the policy file, for evaluate and for the scheduler), tree.txt (to read), report.html;
of a search also search.md (what each size is worth) and the trees of all sizes in frontier.")]
pub struct DistillArgs {
    /// What else is done with a tree.
    #[command(subcommand)]
    #[serde(skip)]
    pub command: Option<DistillCommand>,
    /// Whom to learn from: a training run, a policy file, or a heuristic's name. A search needs nobody
    #[arg(long, value_name = "NAME|PATH", required_unless_present = "search")]
    pub teacher: Option<String>,
    /// Configuration in TOML; unknown keys are refused; flags override it [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Sizes to try, in leaves, repeated or with commas [default: 4,8,16,32]; with --search the most [default: 12]
    #[arg(long, value_name = "N", value_delimiter = ',', action = ArgAction::Append, value_parser = clap::value_parser!(u16).range(2..=256))]
    pub leaves: Vec<u16>,
    /// Questions from the root to a leaf, at most [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub depth: Option<u16>,
    /// What the tree is made monotone in, so that it can be proved, repeated or with commas: a job that waits longer never comes
    /// later; a job with a shorter estimate never comes later
    #[arg(long, value_name = "WHAT", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monotone: Vec<MonotoneFlag>,
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
    /// Lists of each part (as long, twice as long, load 0.6, load 0.3) on which the tree of a teacher is judged too; 0 = none
    #[arg(long, value_name = "N", default_value_t = PART_LISTS, value_parser = clap::value_parser!(u16).range(0..=1000))]
    #[serde(skip_serializing_if = "is_default_part_lists")]
    pub part_lists: u16,
    /// Search in the simulator: change trees a little, keep what schedules better. Begins at hand rules, and at the trees of
    /// --teacher and --start
    #[arg(long, help_heading = "Search")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub search: bool,
    /// Search for a tree by whose passes GPUs are dealt, as if all leases had ended (`--policy deal:PATH`), against the planners
    /// that deal. Needs --preemption
    #[arg(long, requires = "search", help_heading = "Search")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deal: bool,
    /// Lists of jobs to simulate in the search [default: 30000]
    #[arg(long, value_name = "N", requires = "search", help_heading = "Search", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulations: Option<u64>,
    /// Policy files to begin at too, repeated or with commas
    #[arg(long, value_name = "PATH", requires = "search", help_heading = "Search", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// Policies to compare with, repeated or with commas
    #[arg(long, value_name = "NAME|PATH", requires = "search", help_heading = "Search", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// Lists of each part on which the tree must beat its start, and which nothing was chosen by [default: 40]
    #[arg(long, value_name = "N", requires = "search", help_heading = "Search", value_parser = clap::value_parser!(u16).range(2..=1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_lists: Option<u16>,
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

/// What trees can be made monotone in.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MonotoneFlag {
    /// A job that waits longer, all else equal, never comes later
    Waiting,
    /// A job with a shorter estimate, all else equal, never comes later
    Estimate,
}

impl MonotoneFlag {
    /// As the learner knows them.
    #[must_use]
    pub fn all_of(flags: &[MonotoneFlag]) -> Vec<Monotone> {
        let of = |flag: &MonotoneFlag| match flag {
            MonotoneFlag::Waiting => Monotone::Waiting,
            MonotoneFlag::Estimate => Monotone::Estimate,
        };
        flags.iter().map(of).collect()
    }
}

/// Lists of each part unless somebody says otherwise.
pub const PART_LISTS: u16 = 12;

/// The configuration of a run does not name what was not there when it was first written.
fn is_default_part_lists(lists: &u16) -> bool {
    *lists == PART_LISTS
}

impl DistillArgs {
    /// Threads of what is done.
    #[must_use]
    pub fn threads(&self) -> Option<u16> {
        match &self.command {
            Some(DistillCommand::Ablate(args)) => args.parts.threads,
            Some(DistillCommand::Check(args)) => args.parts.threads,
            Some(DistillCommand::Frontier(args)) => args.run.threads,
            Some(DistillCommand::Guard(args)) => args.run.threads,
            Some(DistillCommand::Drift(args)) => args.run.threads,
            Some(DistillCommand::Stability(args)) => args.run.threads,
            Some(DistillCommand::Certify(_) | DistillCommand::Seal(_) | DistillCommand::Bundle(_)) | None => {
                self.run.threads
            }
        }
    }

    /// Where what is done is written as JSON.
    #[must_use]
    pub fn json(&self) -> &Option<PathBuf> {
        match &self.command {
            Some(DistillCommand::Ablate(args)) => &args.parts.json,
            Some(DistillCommand::Check(args)) => &args.parts.json,
            Some(DistillCommand::Frontier(args)) => &args.run.json,
            Some(DistillCommand::Guard(args)) => &args.run.json,
            Some(DistillCommand::Drift(args)) => &args.run.json,
            Some(DistillCommand::Stability(args)) => &args.run.json,
            Some(DistillCommand::Certify(_) | DistillCommand::Seal(_) | DistillCommand::Bundle(_)) | None => {
                &self.run.json
            }
        }
    }
}

/// What else is done with a tree, or in place of one.
#[derive(Subcommand, Clone, Debug)]
pub enum DistillCommand {
    /// What each leaf and each feature of a tree is worth: the tree without it on the same lists
    Ablate(Box<AblateArgs>),
    /// Says what is certain of a tree: proved, refuted with two candidates that show it, or open
    Certify(CertifyArgs),
    /// A tree that was edited against the version before: what it says, what is certain, how it schedules
    Check(Box<CheckArgs>),
    /// Sizes against what their trees are worth, beside teacher and heuristics: table, plots, trees
    Frontier(Box<FrontierArgs>),
    /// What a guard against endless waiting costs and gains, for several lengths; writes one into the file
    Guard(Box<GuardArgs>),
    /// Makes a tree ready to be deployed: certificates, golden vectors, fallback, visits in its file
    Seal(Box<SealArgs>),
    /// How much trees differ that were distilled from one teacher with other seeds
    Stability(Box<StabilityArgs>),
    /// How far what a tree is offered on lists has moved from where it was judged
    Drift(Box<DriftArgs>),
    /// Writes a folder with all that a tree is deployed with, and a manifest of hashes
    Bundle(BundleArgs),
}

/// Distils a teacher to trees of several sizes and reports each on lists that nothing was chosen by (as long, longer, low loads):
/// average JCT over that of the best heuristic with its interval, beside the teacher and other policies.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach distill frontier --teacher runs/mine
  pleach distill frontier --teacher net.ckpt --workload Pleach/PhillyGang-v1 --leaves 2,4,8 --lists 8
  pleach distill frontier --teacher net.ckpt --against sjf,mine.json

In the folder: frontier.json, frontier.md, frontier.html (a plot for each part), trees/leaves-N.json.")]
pub struct FrontierArgs {
    /// Whom to learn from: a training run, a policy file, or a heuristic's name
    #[arg(long, value_name = "NAME|PATH")]
    pub teacher: String,
    /// Sizes in leaves, repeated or with commas [default: 2,4,8,16,32,64,128]
    #[arg(long, value_name = "N", value_delimiter = ',', action = ArgAction::Append, value_parser = clap::value_parser!(u16).range(2..=256))]
    pub leaves: Vec<u16>,
    /// What the tree is made monotone in, so that it can be proved, repeated or with commas: a job that waits longer never comes
    /// later; a job with a shorter estimate never comes later
    #[arg(long, value_name = "WHAT", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monotone: Vec<MonotoneFlag>,
    /// Lists of each part; half as many of those twice and four times as long
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub lists: u16,
    /// Policies to show as lines too, repeated or with commas
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append, default_value = "sjf,gpu-time-reserve")]
    pub against: Vec<String>,
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

/// Says what holds for every decision that a tree will ever take: proved, refuted with two candidates that show it, or open.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill certify runs/mine/tree.json
  pleach distill certify tree.json --write      and keep it in the file, whose readers prove it again")]
pub struct CertifyArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Put the certificates into the file; whoever reads it checks them
    #[arg(long)]
    pub write: bool,
}
