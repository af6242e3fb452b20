//! `pleach sweep emit`: flags.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pleach_experiments::evaluate::flag_values;

use super::sweep_place::SweepPlace;
use super::{ForceFlag, QuietFlag};

/// Writes a sweep as a file that Slurm, Kubernetes or Ray runs. Nothing is submitted: the file says how that is done, what its exit
/// codes mean and what is tried again. It may be run again at any time; units that are done are kept.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach sweep emit slurm --manifest runs/load/sweep.json
  bash runs/load/sweep.sbatch
  pleach sweep emit slurm --manifest runs/load/sweep.json --parallel 200 --option=--partition=cpu --option=--time=2:00:00
  pleach sweep emit kubernetes --manifest runs/load/sweep.json --image registry.example/pleach:0.1.0 --claim results
  kubectl apply -f runs/load/sweep-job.yaml
  pleach sweep emit ray --manifest runs/load/sweep.json
  python3 runs/load/sweep_ray.py --address auto

Slurm: `bash` with the script makes the folder of logs and submits the array, and a job behind it that gathers; `sbatch` with it
submits the array alone. A unit that exits with 75 or is killed is requeued, at most --retries times. Relative paths count from the
folder in which the script is submitted. MaxArraySize of slurm.conf bounds the indexes.
Kubernetes: a container sees the volume at /sweep; it holds the manifest under its own name, and the results beside it. A pod takes its index from
JOB_COMPLETION_INDEX. Exit codes 1 and 2 fail the index at once (podFailurePolicy), any other is tried again at most --retries times
(backoffLimitPerIndex). --manifest is read here, for the number of units and the name.
Ray: the driver leaves out what is done, runs a unit again that exits with 75, is killed or loses its node, at most --retries times,
prints a line for each unit and gathers at the end. Manifest, results and program have to be where every node sees them.")]
pub struct EmitArgs {
    /// What runs the sweep
    #[arg(value_name = "SYSTEM")]
    pub system: EmitSystem,
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
    #[arg(long, value_name = "P", default_value_t = 64, value_parser = flag_values::whole::<u32>(1..=10_000))]
    pub parallel: u32,
    /// How often to run a unit again that asks for another try (75) or was killed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = flag_values::whole::<u16>(0..=100))]
    pub retries: u16,
    /// Cores of a unit, and its threads
    #[arg(long, value_name = "C", default_value_t = 1, value_parser = flag_values::whole::<u16>(1..=1024))]
    pub cpus: u16,
    /// Whether another file of that name, which you may have changed, may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// How much is said.
    #[command(flatten)]
    pub words: QuietFlag,
    /// Of slurm alone.
    #[command(flatten)]
    pub slurm: SlurmFlags,
    /// Of kubernetes alone.
    #[command(flatten)]
    pub kubernetes: KubernetesFlags,
}

/// What runs a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmitSystem {
    /// A job array of Slurm, with a job behind it that gathers
    Slurm,
    /// An Indexed Job of Kubernetes
    Kubernetes,
    /// A driver in Python for Ray
    Ray,
}

/// Options of Slurm alone.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Slurm")]
pub struct SlurmFlags {
    /// Folder of the logs, one for each unit [default: logs beside the results]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// One more option of sbatch, in its long form, for the array and the job that gathers; repeat it for more
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub option: Vec<String>,
}

/// Options of Kubernetes alone.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Kubernetes")]
pub struct KubernetesFlags {
    /// Image with the program
    #[arg(long, value_name = "IMAGE", required_if_eq("system", "kubernetes"))]
    pub image: Option<String>,
    /// PersistentVolumeClaim with the manifest and the results, which several nodes may write to
    #[arg(long, value_name = "NAME", conflicts_with = "host_path")]
    pub claim: Option<String>,
    /// Folder of the node in the place of a claim; for a cluster of one node
    #[arg(long, value_name = "DIR")]
    pub host_path: Option<String>,
    /// Memory of a unit, requested and its limit, as 2Gi [default: none]
    #[arg(long, value_name = "AMOUNT")]
    pub memory: Option<String>,
}

impl SlurmFlags {
    /// The first of its flags that is given.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let flags = [("logs", self.logs.is_some()), ("option", !self.option.is_empty())];
        first(flags)
    }
}

impl KubernetesFlags {
    /// The first of its flags that is given.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            ("image", &self.image),
            ("claim", &self.claim),
            ("host-path", &self.host_path),
            ("memory", &self.memory),
        ];
        first(flags.map(|(name, value)| (name, value.is_some())))
    }
}

fn first<const N: usize>(flags: [(&'static str, bool); N]) -> Option<&'static str> {
    let given = flags.into_iter().find(|(_, is_given)| *is_given);
    given.map(|(name, _)| name)
}
