//! `pleach sweep emit`: flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::sweep_place::SweepPlace;

/// A sweep as a file that Slurm, Kubernetes or Ray runs. Nothing is submitted: the file says how that is done, what its exit
/// codes mean and what is tried again. It may be run again at any time; units that are done are kept.
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  pleach sweep emit slurm --manifest runs/load/sweep.json
  pleach sweep emit kubernetes --manifest runs/load/sweep.json --image registry.example/pleach:0.1.0 --claim results
  pleach sweep emit ray --manifest runs/load/sweep.json")]
pub struct EmitArgs {
    /// For what.
    #[command(subcommand)]
    pub command: EmitCommand,
}

/// Systems that run a sweep.
#[derive(Clone, Debug, Subcommand)]
pub enum EmitCommand {
    /// A job array of Slurm, with a job behind it that gathers
    Slurm(EmitSlurmArgs),
    /// An Indexed Job of Kubernetes
    Kubernetes(EmitKubernetesArgs),
    /// A driver in Python for Ray
    Ray(EmitRayArgs),
}

/// What every form takes.
#[derive(Args, Clone, Debug)]
pub struct EmitShared {
    /// Which sweep.
    #[command(flatten)]
    pub place: SweepPlace,
    /// The file to write; - for standard output [default: sweep.sbatch, sweep-job.yaml or sweep_ray.py beside the results]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The program on the machines that run the units
    #[arg(long, value_name = "PROGRAM", default_value = "pleach")]
    pub program: String,
    /// Units at a time, at most
    #[arg(long, value_name = "P", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub parallel: u32,
    /// How often to run a unit again that asks for another try (75) or was killed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=100))]
    pub retries: u16,
    /// Cores of a unit
    #[arg(long, value_name = "C", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub cpus: u16,
    /// Replace another file of that name
    #[arg(long)]
    pub force: bool,
    /// Print nothing
    #[arg(long, short)]
    pub quiet: bool,
}

/// `pleach sweep emit slurm`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach sweep emit slurm --manifest runs/load/sweep.json
  bash runs/load/sweep.sbatch
  pleach sweep emit slurm --manifest runs/load/sweep.json --parallel 200 --option=--partition=cpu --option=--time=2:00:00

`bash` with the script makes the folder of logs and submits the array, and a job behind it that gathers. `sbatch` with the
script submits the array alone. A unit that exits with 75 or is killed is requeued, at most --retries times.
Relative paths count from the folder in which the script is submitted. MaxArraySize of slurm.conf bounds the indexes.")]
pub struct EmitSlurmArgs {
    /// What every form takes.
    #[command(flatten)]
    pub shared: EmitShared,
    /// List every unit, not only those without a result
    #[arg(long)]
    pub all: bool,
    /// Folder of the logs, one for each unit [default: logs beside the results]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// One more option of sbatch, in its long form, for the array and the job that gathers; repeat it for more
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub option: Vec<String>,
    /// No job behind the array that gathers
    #[arg(long)]
    pub no_gather: bool,
}

/// `pleach sweep emit kubernetes`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach sweep emit kubernetes --manifest runs/load/sweep.json --image registry.example/pleach:0.1.0 --claim results
  kubectl apply -f runs/load/sweep-job.yaml

The volume holds the manifest under its own name, and the results beside it; --sub-path names a folder in the volume. A pod
takes its index from JOB_COMPLETION_INDEX. Exit codes 1 and 2 fail the index at once (podFailurePolicy), any other is tried
again at most --retries times (backoffLimitPerIndex). --manifest is read here, for the number of units and the name.")]
#[command(group = clap::ArgGroup::new("volume").required(true).args(["claim", "host_path"]))]
pub struct EmitKubernetesArgs {
    /// What every form takes.
    #[command(flatten)]
    pub shared: EmitShared,
    /// Image with the program
    #[arg(long, value_name = "IMAGE")]
    pub image: String,
    /// PersistentVolumeClaim with the manifest and the results, which several nodes may write to
    #[arg(long, value_name = "NAME")]
    pub claim: Option<String>,
    /// Folder of the node in the place of a claim; for a cluster of one node
    #[arg(long, value_name = "DIR")]
    pub host_path: Option<String>,
    /// Folder in the volume [default: all of it]
    #[arg(long, value_name = "DIR")]
    pub sub_path: Option<String>,
    /// Where a container sees the volume
    #[arg(long, value_name = "DIR", default_value = "/sweep")]
    pub mount: String,
    /// Memory of a unit, requested and its limit, as 2Gi
    #[arg(long, value_name = "AMOUNT")]
    pub memory: Option<String>,
    /// Namespace of the Job [default: that of whoever applies it]
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
}

/// `pleach sweep emit ray`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach sweep emit ray --manifest runs/load/sweep.json
  python3 runs/load/sweep_ray.py
  python3 runs/load/sweep_ray.py --address auto

The driver leaves out what is done, runs a unit again that exits with 75, is killed or loses its node, at most --retries times,
prints a line for each unit and gathers at the end. Manifest, results and program have to be where every node sees them.")]
pub struct EmitRayArgs {
    /// What every form takes.
    #[command(flatten)]
    pub shared: EmitShared,
}
