//! `pleach twin`: flags.

use clap::Args;
use pleach_experiments::{SchedulingConfig, WorkloadSource};

use super::ReportFlags;

/// Simulates a site's list under a policy and prints what happened there beside it: waits by size, partition and tenant, use and
/// queue by week, and how far the simulation can be trusted. The list has to know when its jobs began.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach workload import sacct.txt --nodes nodes.txt --to month.csv
  pleach twin --workload month.csv
  pleach twin --workload month.csv --policy fifo --json twin.json")]
pub struct TwinArgs {
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// The site's own policy, by name or file
    #[arg(
        long,
        value_name = "NAME|PATH",
        default_value = "easy",
        help_heading = "Scheduling"
    )]
    pub policy: String,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}
