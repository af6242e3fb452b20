//! `pleach run`: flags.

use std::path::PathBuf;

use clap::Args;

use super::{JsonFlag, MachineFlags};

/// From a site's files to a decision: import, describe, twin, compare, search, judge, explain, and a page that ends in deploy, do not
/// deploy, or nothing to win here. Each step names the command that does the same alone; a run that is begun again goes on.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach run site.toml --init sacct.txt --nodes nodes.txt       write site.toml, with what every key means
  pleach run site.toml                                          some minutes on two cores; begun again it goes on
  pleach run site.toml --out runs/april --force                 anew, in another folder

In the folder: report.html (read this first), decision.json, list.csv, tree.json, tree.txt, search.md, explain.txt,
pleach-scheduler.toml (for a shadow), and an artefact of every step.")]
pub struct SiteArgs {
    /// The site's files and settings, in TOML
    #[arg(value_name = "SITE.TOML", default_value = "site.toml")]
    pub site: PathBuf,
    /// Write SITE.TOML for this accounting (as `pleach workload import` reads it), and end
    #[arg(long, value_name = "JOBS")]
    pub init: Option<PathBuf>,
    /// With --init: what scontrol show node, sinfo or kubectl get nodes -o json prints
    #[arg(long, value_name = "FILE", requires = "init")]
    pub nodes: Option<PathBuf>,
    /// With --init: the cluster where no list of nodes is there, a description or nodes x GPUs : type
    #[arg(
        long,
        value_name = "FILE|NxG:TYPE",
        requires = "init",
        conflicts_with = "nodes"
    )]
    pub cluster: Option<PathBuf>,
    /// Folder for the artefacts [default: NAME-run beside NAME.toml]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Do everything anew in a folder where a run is, or replace SITE.TOML
    #[arg(long, help_heading = "Output")]
    pub force: bool,
    /// Results for programs.
    #[command(flatten)]
    pub data: JsonFlag,
    /// This machine.
    #[command(flatten)]
    pub machine: MachineFlags,
}
