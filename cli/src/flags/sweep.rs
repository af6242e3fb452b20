//! `pleach sweep`: flags.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pleach_experiments::evaluate::flag_values;

use super::emit::EmitArgs;
use super::sweep_place::SweepPlace;
use super::{ForceFlag, MachineFlags, QuietFlag};

/// Many independent units: every combination of a grid with every seed. Kill anything at any time and start it again;
/// finished units are kept and nothing is done twice.
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
On one machine:
  pleach sweep plan --config grid.toml --out runs/load/sweep.json
  pleach sweep run --manifest runs/load/sweep.json
  pleach sweep gather --manifest runs/load/sweep.json

Under Slurm (also for Kubernetes and Ray), or any system that hands out indexes:
  pleach sweep emit slurm --manifest runs/load/sweep.json
  pleach sweep unit --manifest runs/load/sweep.json --index 7")]
pub struct SweepArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SweepCommand,
}

/// Steps of a sweep.
#[derive(Clone, Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one is read in a run")]
pub enum SweepCommand {
    /// Turn a grid into a manifest of units
    Plan(PlanArgs),
    /// Run every missing unit on the threads of this machine
    Run(SweepRunArgs),
    /// Run one unit; exits with 0 done, 75 try again, 2 bad configuration, 1 failed
    Unit(UnitArgs),
    /// Merge all results into one CSV, one JSON and one page, or say which units are done, failed or missing
    Gather(GatherArgs),
    /// Write the sweep as a job array of Slurm, an Indexed Job of Kubernetes or a driver for Ray
    Emit(EmitArgs),
}

impl SweepCommand {
    /// The folder of the results, where units are run.
    #[must_use]
    pub fn out(&self) -> &Path {
        match self {
            SweepCommand::Run(args) => args.place.out(),
            SweepCommand::Unit(args) => args.place.out(),
            _ => Path::new("."),
        }
    }
}

/// `pleach sweep plan`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  pleach sweep plan --config grid.toml --out runs/load/sweep.json

grid.toml:
  name = \"load\"
  seeds = 5                       # or a list: [0, 1, 2]
  [base]                          # what all units share
  workload = \"philly-like\"
  num_jobs = 2000
  [grid]                          # every combination is tried with every seed
  load = [0.6, 0.8, 1.0]
  policy = [\"fifo\", \"sjf\"]

With command = \"train\" under [base] a unit trains; settings are the flags of the command and the keys of settings.toml.
[draw] draws values, [halving] runs all with little and the better part with more (docs/cli.md).")]
pub struct PlanArgs {
    /// The grid, in TOML
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The manifest to write [default: runs/sweep-NAME-HASH/sweep.json]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Whether another manifest of that name may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// How much is said.
    #[command(flatten)]
    pub words: QuietFlag,
}

/// `pleach sweep run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach sweep run --manifest runs/load/sweep.json
  pleach sweep run --manifest runs/load/sweep.json --threads 4 --index 0-9,12")]
pub struct SweepRunArgs {
    /// Which sweep.
    #[command(flatten)]
    pub place: SweepPlace,
    /// Only these units, as 0-3,7
    #[arg(long, value_name = "LIST")]
    pub index: Option<String>,
    /// How often to run a unit again that asks for another try
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = flag_values::whole::<u8>(0..=100))]
    pub retries: u8,
    /// Units at a time, as many as threads.
    #[command(flatten)]
    pub machine: MachineFlags,
}

/// `pleach sweep unit`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  pleach sweep unit --manifest runs/load/sweep.json --index 7

Without --index it is taken from SLURM_ARRAY_TASK_ID, or else from JOB_COMPLETION_INDEX (Kubernetes).")]
pub struct UnitArgs {
    /// Which sweep.
    #[command(flatten)]
    pub place: SweepPlace,
    /// Index of the unit [default: SLURM_ARRAY_TASK_ID, or else JOB_COMPLETION_INDEX]
    #[arg(long, value_name = "K", value_parser = flag_values::whole::<usize>(0..=100_000))]
    pub index: Option<usize>,
}

/// `pleach sweep gather`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach sweep gather --manifest runs/load/sweep.json
  pleach sweep gather --manifest runs/load/sweep.json --metric p99_jct_s --x load --partial
  pleach sweep gather --manifest runs/load/sweep.json --reference sjf --mlflow mlruns
  pleach sweep gather --manifest runs/load/sweep.json --status
  sbatch --array=$(pleach sweep gather --manifest runs/load/sweep.json --missing) sweep.sbatch")]
pub struct GatherArgs {
    /// Which sweep.
    #[command(flatten)]
    pub place: SweepPlace,
    /// Go on with units missing
    #[arg(long)]
    pub partial: bool,
    /// The metric to rank by and to plot [default: avg_jct_s, or else the first number]
    #[arg(long, value_name = "KEY")]
    pub metric: Option<String>,
    /// The parameter that has a panel [default: all that vary]
    #[arg(long, value_name = "KEY")]
    pub x: Option<String>,
    /// Measure the others on the leaderboard against this configuration or policy [default: the best]
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,
    /// Also write the units as runs into this store of MLflow
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub mlflow: Option<PathBuf>,
    /// Merge nothing: say which units are done, failed or missing
    #[arg(long, conflicts_with_all = ["partial", "metric", "x", "reference", "mlflow"])]
    pub status: bool,
    /// Merge nothing: print only the indexes to run, failed ones too, in array syntax
    #[arg(long, conflicts_with_all = ["partial", "metric", "x", "reference", "mlflow"])]
    pub missing: bool,
    /// Merge nothing: write which units are done, failed or missing as JSON to this file; - for standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["partial", "metric", "x", "reference", "mlflow"], help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// How much is said.
    #[command(flatten)]
    pub words: QuietFlag,
}
