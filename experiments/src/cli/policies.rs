//! `pleach policies`: flags.

use std::path::PathBuf;

use clap::Args;

/// Lists the built-in policies with what each one orders by and needs to know, or shows one policy file in words.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach policies                                       names to give to --policy
  pleach policies --show runs/mine/tree.json            a tree in words, with what it needs
  pleach policies --json policies.json")]
pub struct PoliciesArgs {
    /// Show this policy, by name or file
    #[arg(long, value_name = "NAME|PATH")]
    pub show: Option<String>,
    /// Also write the list as JSON to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
}
