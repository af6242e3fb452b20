//! `pleach workload`: flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::evaluate::WorkloadSource;

/// Workloads: presets that generate jobs from published figures, and traces of real clusters.
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true)]
pub struct WorkloadArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: WorkloadCommand,
}

/// What to do with workloads.
#[derive(Clone, Debug, Subcommand)]
pub enum WorkloadCommand {
    /// List the presets with their sources
    #[command(after_help = "Example:\n  pleach workload list")]
    List,
    /// Describe a workload: jobs, gang sizes, lengths, load, tenants
    #[command(after_help = "\
Examples:
  pleach workload stats --workload philly-like --num-jobs 10000
  pleach workload stats --workload trace.csv --format venus --json stats.json")]
    Stats(WorkloadStatsArgs),
    /// Write a workload as the canonical CSV or Parquet: generates a preset, or converts a trace
    #[command(
        visible_alias = "convert",
        after_help = "\
Examples:
  pleach workload write --workload philly-like --num-jobs 10000 --to jobs.csv
  pleach workload write --workload philly.csv.gz --format philly --from-day 30 --days 7 --to week.csv
  pleach workload convert --workload pods.csv.gz --to pods.parquet"
    )]
    Write(WorkloadWriteArgs),
}

/// `pleach workload stats`.
#[derive(Args, Clone, Debug)]
pub struct WorkloadStatsArgs {
    /// Which jobs.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// Root of all randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Also write the numbers as JSON to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
}

/// `pleach workload write`.
#[derive(Args, Clone, Debug)]
pub struct WorkloadWriteArgs {
    /// Which jobs.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// Root of all randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// File to write, by its ending .parquet, .csv.gz (gzipped) or .csv; the cluster goes beside it as NAME.cluster.toml
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub to: PathBuf,
    /// Replace the file if it is there
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}
