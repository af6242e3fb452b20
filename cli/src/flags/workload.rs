//! `pleach workload`: flags.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use pleach_experiments::evaluate::day::{self, Day};
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::worlds::kinds;
use pleach_experiments::{SchedulingConfig, WorkloadSource};
use serde::Serialize;

use super::{ForceFlag, RunArgs, SeedFlag, WorldFlag};

/// Workloads: presets that generate jobs from published figures, and traces of real clusters. Without a command it lists the
/// presets and the environments with their sources.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach workload                                       names to give to --workload
  pleach workload settings service                      what else a world is told, by --set
  pleach workload describe --workload philly-like       what is in one
  pleach workload write --workload philly-like --to jobs.csv")]
pub struct WorkloadArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<WorkloadCommand>,
}

/// What to do with workloads.
#[derive(Clone, Debug, Subcommand)]
pub enum WorkloadCommand {
    /// Show a workload and its cluster as the Philly study did: sizes, arrivals, load, outcomes, and which jobs wait why
    #[command(after_help = "\
Examples:
  pleach workload describe --workload philly-like --num-jobs 10000 --out runs/philly-like
  pleach workload describe --workload jobs.csv.gz --format philly --from-day 30 --days 60 --policy easy
  pleach workload describe --workload trace.csv --cluster cluster.toml --no-simulate --json trace.json

Prints tables; --out adds a page with plots (report.html) and all figures (describe.json).
A job waits for its fair share while its tenant would exceed its quota, for capacity while too few GPUs are free,
because of fragmentation while enough are free but not as tightly as they could be, and is held back by the policy
else. The last three together are what the Philly study (ATC'19) calls fragmentation.")]
    Describe(Box<WorkloadDescribeArgs>),
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
    /// List the settings of a world that is not of jobs: what --set takes beside --workload
    #[command(after_help = "\
Examples:
  pleach workload settings requests
  pleach evaluate --workload requests --set replicas=8 --set loads=0.8,1,1.2")]
    Settings(WorkloadSettingsArgs),
    /// Read a site's own accounting, what sacct -P or sacct --json prints or any table, and write it as the canonical file
    #[command(after_help = "\
Examples:
  pleach workload import sacct.txt --nodes nodes.txt --to month.csv
  pleach workload import sacct.json --cluster 12x8:A100,4x4:V100 --to month.csv
  pleach workload import jobs.csv --mapping month.mapping.toml --to month.csv --force

sacct -a -P -X -S now-60days -o JobID,User,Account,Partition,QOS,Submit,Eligible,Start,End,Elapsed,Timelimit,State,\
ReqTRES,AllocTRES,NodeList and scontrol show node print what is best to give. Columns may come in any order. What is left out
or mended is counted by its reason; how the table was read is written beside the list as NAME.mapping.toml, to be edited and
given back.")]
    Import(WorkloadImportArgs),
}

/// `pleach workload describe`.
#[derive(Args, Clone, Debug, Serialize)]
pub struct WorkloadDescribeArgs {
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// Settings of the world.
    #[command(flatten)]
    #[serde(flatten)]
    pub of_world: WorldFlag,
    /// Policy by name or file under which waiting and occupancy are simulated
    #[arg(
        long,
        value_name = "NAME|PATH",
        default_value = "fifo",
        conflicts_with = "no_simulate",
        help_heading = "Scheduling"
    )]
    pub policy: String,
    /// Leave the simulation out: only what the list itself says
    #[arg(long, help_heading = "Scheduling")]
    pub no_simulate: bool,
    /// Simulate at most so many jobs, the first ones
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200_000,
        value_parser = flag_values::whole::<u32>(1..=10_000_000),
        help_heading = "Scheduling"
    )]
    pub sim_jobs: u32,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}

/// `pleach workload write`.
#[derive(Args, Clone, Debug)]
pub struct WorkloadWriteArgs {
    /// Which jobs.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// Settings of the world.
    #[command(flatten)]
    pub of_world: WorldFlag,
    /// Where draws come from.
    #[command(flatten)]
    pub draws: SeedFlag,
    /// File to write, by its ending .parquet, .csv.gz (gzipped) or .csv; the cluster goes beside it as NAME.cluster.toml
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub to: PathBuf,
    /// Whether it may be replaced, and the cluster of another workload beside it.
    #[command(flatten)]
    pub target: ForceFlag,
}

/// `pleach workload settings`.
#[derive(Args, Clone, Debug)]
pub struct WorkloadSettingsArgs {
    /// The world
    #[arg(value_name = "WORLD", value_parser = PossibleValuesParser::new(kinds().map(|kind| kind.name)))]
    pub world: String,
}

/// `pleach workload import`.
#[derive(Args, Clone, Debug)]
pub struct WorkloadImportArgs {
    /// The accounting: what sacct -P or sacct --json prints, or any table with a header, plain, gzipped or Parquet
    #[arg(value_name = "FILE")]
    pub from: PathBuf,
    /// How the table is read, in TOML [default: guessed from its header]
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// What scontrol show node or sinfo prints: the cluster, and the GPU types of its partitions
    #[arg(long, value_name = "FILE")]
    pub nodes: Option<PathBuf>,
    /// Cluster: a description in TOML or JSON, or nodes x GPUs : type [default: the nodes given, else those seen in the list]
    #[arg(long, value_name = "FILE|NxG:TYPE")]
    pub cluster: Option<PathBuf>,
    /// Zone of times that name none: UTC, +01:00, Europe/Berlin or a rule of POSIX [default: the mapping's, else UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub time_zone: Option<String>,
    /// First day to take, from 0: the day of the first submission; or its date (UTC)
    #[arg(long, value_name = "DAY|DATE", value_parser = Day::read)]
    pub from_day: Option<Day>,
    /// Days to take, above 0, or a length such as 36h
    #[arg(long, value_name = "DAYS", value_parser = day::days)]
    pub days: Option<f64>,
    /// File to write, by its ending .parquet, .csv.gz (gzipped) or .csv; NAME.cluster.toml and NAME.mapping.toml go beside it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub to: PathBuf,
    /// Whether they may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
}
