//! `pleach distill`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use pleach_distill::Monotone;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::{SchedulingConfig, WorkloadSource};
use serde::Serialize;

use super::check::CheckArgs;
use super::seal::SealArgs;
use super::{AgainstFlag, RunArgs, WorldFlag};

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
                                                        a tree of which both are certain; `pleach distill check` proves it
  pleach distill --teacher runs/mine --objective avg_jct_s=1,p99_jct_s=0.2
                                                        a tree that is chosen by its tail too
  pleach distill --search --workload Pleach/GavelMulti-v1
                                                        a tree that is found in the simulator, without a teacher
  pleach distill --search --teacher runs/mine --start mine.json
                                                        the same from a teacher's trees and from one of your own
  pleach distill --search --form formula --workload Pleach/GavelMulti-v1
                                                        a formula of at most 40 symbols (docs/formulas.md)

In the folder: tree.json (the policy file, for evaluate and for the scheduler), tree.txt (to read), report.html;
of a search also search.md (what each size is worth) and the trees of all sizes in frontier. What each size is worth without a
search, and how much trees of several seeds differ, a sweep says (docs/distilling.md).")]
pub struct DistillArgs {
    /// What else is done with a tree.
    #[command(subcommand)]
    #[serde(skip)]
    pub command: Option<DistillCommand>,
    /// Teacher: a training run, a policy file, or a heuristic's name. A search needs none
    #[arg(long, value_name = "NAME|PATH", required_unless_present = "search")]
    pub teacher: Option<String>,
    /// Configuration in TOML; unknown keys are refused; flags override it [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Sizes to try, in leaves, repeated or with commas: the smallest that is nearly as good as the best is taken [default:
    /// 4,8,16,32]; with --search the most [default: 12]
    #[arg(long, value_name = "N", value_delimiter = ',', action = ArgAction::Append, value_parser = flag_values::whole::<u16>(2..=256))]
    pub leaves: Vec<u16>,
    /// Questions from the root to a leaf, at most [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u16>(1..=256))]
    pub depth: Option<u16>,
    /// What the tree is made monotone in, so that it can be proved, repeated or with commas; not with --search
    #[arg(long, value_name = "WHAT", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monotone: Vec<MonotoneFlag>,
    /// Rounds of DAgger after the teacher's own: the tree drives, the teacher labels what it meets [default: 3]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u16>(0..=100))]
    pub rounds: Option<u16>,
    /// Episodes to play in each round [default: 8]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=100_000))]
    pub episodes: Option<u32>,
    /// What trees are compared by: metrics and their weights as in the objective of train, repeated or with commas
    /// [default: avg_jct_s=1]
    #[arg(long, value_name = "METRIC=WEIGHT", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip)]
    pub objective: Vec<String>,
    /// Seeds that the result is reported on [default: 10]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=1000))]
    pub test_seeds: Option<u32>,
    /// Lists of each part (as long, twice as long, load 0.6, load 0.3) on which the trees of a teacher are judged too; 0 = none
    /// [default: 12]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u16>(0..=1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_lists: Option<u16>,
    /// Search in the simulator: change trees a little, keep what schedules better. Begins at hand rules, and at the trees of
    /// --teacher and --start
    #[arg(long, help_heading = "Search")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub search: bool,
    /// What is searched for: a tree, or a formula of at most --leaves symbols [default: 40]
    #[arg(long, value_name = "FORM", default_value = "tree", help_heading = "Search")]
    #[serde(skip_serializing_if = "FormFlag::is_tree")]
    pub form: FormFlag,
    /// Search for a tree by whose passes GPUs are dealt, as if all leases had ended (`--policy deal:PATH`), against the planners
    /// that deal. Needs --preemption
    #[arg(long, requires = "search", help_heading = "Search")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deal: bool,
    /// Lists of jobs to simulate in the search [default: 30000]
    #[arg(long, value_name = "N", requires = "search", help_heading = "Search", value_parser = flag_values::whole::<u64>(1..=100_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulations: Option<u64>,
    /// Policy files to begin at too, repeated or with commas
    #[arg(long, value_name = "PATH", requires = "search", help_heading = "Search", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<String>,
    /// Lists of each part on which the tree must beat its start, and which nothing was chosen by [default: 40]
    #[arg(long, value_name = "N", requires = "search", help_heading = "Search", value_parser = flag_values::whole::<u16>(2..=1000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_lists: Option<u16>,
    /// Others beside the tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub beside: AgainstFlag,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// Settings of the world.
    #[command(flatten)]
    #[serde(flatten)]
    pub of_world: WorldFlag,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}

/// What a search is for.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FormFlag {
    /// A decision tree
    #[default]
    Tree,
    /// One line of mathematics, by genetic programming
    Formula,
}

impl FormFlag {
    /// Whether it is the usual one.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        *self == FormFlag::Tree
    }
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

/// What else is done with a tree.
#[derive(Subcommand, Clone, Debug)]
pub enum DistillCommand {
    /// What is certain of a tree and, in the simulator, what its edit, its parts, guards and other lists make of it
    Check(Box<CheckArgs>),
    /// Makes a tree ready to be deployed: certificates, golden vectors, guards, fallback, visits in its file, a bundle
    Seal(Box<SealArgs>),
}
