//! `pleach distill seal`: flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::{SchedulingConfig, WorkloadSource};

use super::{FormsFlag, SeedFlag, WideGangsFlags};

/// Makes a tree ready to be deployed: puts certificates, golden vectors and the fallback into its file. Golden vectors are rows on and
/// beside every threshold with what the tree says of them, as one hash: every reader of the file checks it. With --visits also how often
/// candidates end in each leaf on the lists of --workload, by which the daemon tells drift. With --bundle also a folder with everything
/// that is deployed (the policy file, the tree and its certificates in words, exports) and a manifest with the SHA-256 of each file: the
/// daemon takes the folder as its policy and refuses it where a file was changed, is missing, or was added.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("to", |to| to.requires("bundle").help_heading("Bundle")))]
#[command(after_help = "\
Examples:
  pleach distill seal runs/mine/tree.json
  pleach distill seal tree.json --fallback gpu-time-reserve
  pleach distill seal tree.json --fallback gpu-time-reserve --gpu-types-max 1
                            which decides on clusters of several GPU types too
  pleach distill seal tree.json --overdue 2days --visits --workload jobs.csv --from-day 0 --days 28
  pleach distill seal tree.json --bundle tree-2024-06 --to c,python,onnx

Seal again after every edit: docs/policy-file.md, Sealing.")]
pub struct SealArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The heuristic that decides where the tree cannot, in a daemon whose settings name none [default: what the file says]
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
    /// Most GPU types of a cluster on which the tree decides; on others its fallback does [default: what the file says]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=64))]
    pub gpu_types_max: Option<u32>,
    /// Where another than the tree decides [default: what the file says]
    #[command(flatten)]
    pub wide: WideGangsFlags,
    /// A guard: a job that has waited so long, 1min to 3years, comes before everything else [default: what the file says]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub overdue: Option<Duration>,
    /// A guard: a tenant that holds less than this share of its quota comes first [default: what the file says]
    #[arg(long, value_name = "SHARE", value_parser = flag_values::share)]
    pub floor: Option<f64>,
    /// Record on the lists of --workload in which leaves candidates end [default: what the file has]
    #[arg(long)]
    pub visits: bool,
    /// Lists to record of each workload that is generated
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = flag_values::whole::<u32>(1..=1000))]
    pub seeds: u32,
    /// Where draws come from.
    #[command(flatten)]
    pub draws: SeedFlag,
    /// Also write such a folder, which is not there yet
    #[arg(long, value_name = "DIR", help_heading = "Bundle")]
    pub bundle: Option<PathBuf>,
    /// Exports to put into it.
    #[command(flatten)]
    pub forms: FormsFlag,
    /// What the tree's sources are known by, for the manifest; free
    #[arg(long, value_name = "TEXT", requires = "bundle", help_heading = "Bundle")]
    pub commit: Option<String>,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
}
