//! `pleach cluster`: flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ForceFlag;

/// Clusters: writes a description, checks one, shows one. The short form of the examples is taken wherever `--cluster` is.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach cluster init 12x8:A100,4x4:V100 --to site.toml   a description to edit
  pleach cluster init --nodes nodes.txt --to site.toml    the same from what scontrol show node prints
  pleach cluster check site.toml                          all that is wrong at once, or what is assumed")]
pub struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ClusterCommand,
}

/// What to do with clusters.
#[derive(Clone, Debug, Subcommand)]
pub enum ClusterCommand {
    /// Write a description with everything that was assumed in it, to be edited
    #[command(after_help = "\
Examples:
  pleach cluster init 12x8:A100,4x4:V100 --to site.toml
  pleach cluster init --nodes nodes.txt --to site.toml")]
    Init(ClusterInitArgs),
    /// Check a description: everything that is wrong in it at once, and what is assumed where it says nothing
    #[command(after_help = "\
Examples:
  pleach cluster check site.toml
  pleach cluster check 12x8:A100")]
    Check(ClusterShowArgs),
    /// Show a cluster: its nodes, racks, GPU types and tenants
    #[command(after_help = "\
Examples:
  pleach cluster show site.toml
  pleach cluster show 12x8:A100,4x4:V100")]
    Show(ClusterShowArgs),
}

/// `pleach cluster init`.
#[derive(Args, Clone, Debug)]
pub struct ClusterInitArgs {
    /// Nodes x GPUs : type, with commas between groups
    #[arg(
        value_name = "NxG:TYPE",
        required_unless_present = "nodes",
        conflicts_with = "nodes"
    )]
    pub cluster: Option<PathBuf>,
    /// What scontrol show node or sinfo prints, instead
    #[arg(long, value_name = "FILE")]
    pub nodes: Option<PathBuf>,
    /// File to write, in TOML
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub to: PathBuf,
    /// Whether it may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
}

/// `pleach cluster check` and `pleach cluster show`.
#[derive(Args, Clone, Debug)]
pub struct ClusterShowArgs {
    /// A description in TOML or JSON, NAME.cluster.toml beside a list too, or nodes x GPUs : type
    #[arg(value_name = "FILE|NxG:TYPE")]
    pub cluster: PathBuf,
}
