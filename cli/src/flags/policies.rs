//! `pleach policies`: flags.

use std::path::PathBuf;

use clap::Args;

use super::JsonFlag;

/// Lists the built-in policies and planners with what each one needs to know, decides and asks of the cluster, or shows one.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach policies                                       names to give to --policy
  pleach policies --show runs/mine/tree.json            a tree in words, with what it needs
  pleach policies --show tree.json --html tree.html     the same as a page that folds, with a path for values that you enter
  pleach policies --show runs/mine                      a network: where it was trained, what it chooses among, its size
  pleach policies --show tiresias                       a planner with its settings
  pleach policies --show best-gavel-multi               a named rival: a rule by hand, as a tree
  pleach policies --json policies.json
  pleach policies --features                            what networks and trees read

Rivals (best-gavel-multi, gain-or-wait, five-thresholds, shortest-hold, refuse-slow-day, best-elastic, index-mix, gp-gavel, linear-gavel, gp-share,
share-or-tight) are rules written
by hand, or found by short searches on lists of their own. What is learned is to be ahead of them.")]
pub struct PoliciesArgs {
    /// Show this policy, by name or file
    #[arg(long, value_name = "NAME|PATH")]
    pub show: Option<String>,
    /// Print the columns that networks, trees and formulas read instead, as Markdown
    #[arg(long, conflicts_with_all = ["show", "json"])]
    pub features: bool,
    /// Write the tree of --show as one page for a browser, with nothing beside it: branches that fold, tiers, certificates
    #[arg(long, value_name = "FILE", requires = "show", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// The list for programs.
    #[command(flatten)]
    pub data: JsonFlag,
}
