//! `pleach twin`: flags.

use clap::{ArgAction, Args};
use pleach_experiments::evaluate::day::Day;
use pleach_experiments::{SchedulingConfig, WorkloadSource};

use super::ReportFlags;

/// Simulates a site's list under a policy and prints what happened there beside it: waits by size, partition and tenant, use and
/// queue by week, and how far the simulation can be trusted. The list has to know when its jobs began.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach workload import sacct.txt --nodes nodes.txt --to month.csv
  pleach twin --workload month.csv
  pleach twin --workload month.csv --policy fifo --json twin.json
  pleach twin --workload month.csv --policy easy,fifo,fifo-skip --fit       which is most like the site?
  pleach twin --workload month.csv --policy easy --estimates user --under sjf,tree.json
                                                        your last month under other policies")]
pub struct TwinArgs {
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// The site's own policy, by name or file; with --fit those that it may be like, with commas [default: the scheduler that the
    /// list's records name, else easy]
    #[arg(
        long,
        value_name = "NAME|PATH",
        value_delimiter = ',',
        action = ArgAction::Append,
        help_heading = "Scheduling"
    )]
    pub policy: Vec<String>,
    /// Fit what is free on the first half of the list, and judge on the second: which of the policies, what is believed of run times
    /// (unless --estimates says), and how long a start takes (unless --batch-system says)
    #[arg(long, help_heading = "Scheduling")]
    pub fit: bool,
    /// Print what these policies would have made of the same jobs, as ratios with intervals over days or weeks: names, files or
    /// LABEL=PATH, with commas; all for all heuristics and dealers
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append)]
    pub under: Vec<String>,
    /// With --under: compare jobs that came on this day of the list or later, from 0, or from its date on (UTC); the list is played
    /// from its beginning
    #[arg(long, value_name = "DAY|DATE", value_parser = Day::read)]
    pub since_day: Option<Day>,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}
