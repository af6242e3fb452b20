//! `pleach distill select`: flags.

use clap::{ArgAction, Args};
use serde::Serialize;

use super::RunArgs;
use super::evaluate::{SchedulingFlags, WorkloadFlags};

/// Learns a selector in the simulator: a small tree over the state of the cluster whose leaves name heuristics. Nobody is imitated: it
/// grows from the best single rule, and each size is judged on lists as long as usual, longer ones and low loads. A larger one is
/// accepted only where it beats the smaller one on lists that it never met, by more than luck.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach distill select --workload Pleach/GavelMulti-v1
  pleach distill select --workload Pleach/PhillyGang-v1 --rules sjf-delay,gpu-time-delay,gpu-time-reserve --leaves 4
  pleach distill select --simulations 60000 --lists 40 --out runs/selector

In the folder: selector.json (for evaluate and for the scheduler), selector.txt (to read), report.md and select.json (sizes, parts
and single heuristics), sizes/leaves-N.json. One that is broken off begins anew.")]
pub struct SelectArgs {
    /// Heuristics to choose among, repeated or with commas [default: fifo, easy, sjf, gpu-time, sjf-reserve, gpu-time-reserve,
    /// sjf-best-type, sjf-delay, gpu-time-delay, best-type-delay, and sjf-share, sjf-tuned or sjf-moldable where the environment offers
    /// shared GPUs, cores or sizes]
    #[arg(long, value_name = "NAME", value_delimiter = ',', action = ArgAction::Append)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Most leaves
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    pub leaves: u16,
    /// Lists of jobs to simulate in the search, about
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub simulations: u64,
    /// Lists of each part on which a larger selector must beat a smaller one, and as many others for the report
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub lists: u16,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingFlags,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}
