//! `pleach reproduce`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::evaluate::flag_values;

use super::{PageFlag, ReportFlags};

/// Runs published results again and shows ours beside them: figure, interval, tolerance, verdict, plots. Without an id it
/// lists what can be reproduced.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach reproduce                                      what there is
  pleach reproduce B1 --html b1.html                    one, with plots
  pleach reproduce all --seeds 10 --json figures.json

A missed figure is a finding, not an error: the exit code is 0 whatever the verdicts.")]
pub struct ReproduceArgs {
    /// Ids of benchmarks, or all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Seeds for each point [default: the benchmark's own]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=1000))]
    pub seeds: Option<u32>,
    /// A few small points only: to see that it runs, not to trust the figures
    #[arg(long)]
    pub smoke: bool,
    /// Folder with published job lists, for the benchmarks that can use them; generated ones otherwise
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Results for readers.
    #[command(flatten)]
    pub page: PageFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}
