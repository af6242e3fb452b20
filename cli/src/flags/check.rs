//! `pleach distill check`: flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::{SchedulingConfig, WorkloadSource};
use pleach_scheduler::tree::{PSI_LIMIT_DEFAULT, WINDOW_DECISIONS, WINDOW_DEFAULT};
use serde::Serialize;

use super::{AgainstFlag, RunArgs};

/// Says what holds for every decision that a tree will ever take: proved, refuted with two candidates that show it, or open. Each of
/// --before, --ablate, --after, --floor and --drift adds a part that is simulated.
#[derive(Args, Clone, Debug, Serialize)]
#[command(after_help = "\
Examples:
  pleach distill check runs/mine/tree.json                          what is certain
  pleach distill check mine.json --before runs/mine/tree.json       an edit beside the version before: text, certificates, figures
  pleach distill check tree.json --ablate                           what each leaf and each feature is worth: the tree without it
  pleach distill check tree.json --after 1h,6h,12h,1d,2d            what guards against endless waiting cost and gain
  pleach distill check tree.json --workload Pleach/HeliosTenants-v1 --floor 0.25,0.5,0.75
  pleach distill check tree.json --drift --workload jobs.csv --from-day 28
                                                                    how far what it is offered has moved from where it was judged

A `raw` threshold, a score, a tie key, a guard: change it in the file, then check. Certificates of the file are not believed, but
made anew. Prints it all; --out adds a page with plots (check.html), check.md and check.json.")]
pub struct CheckArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    #[serde(skip)]
    pub file: PathBuf,
    /// The version before an edit: lines of its text that are gone or new, certificates with another verdict, and both versions on
    /// the same lists (as long, longer, low loads)
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub before: Option<PathBuf>,
    /// Run the tree without each of its leaves, and with each of its features shuffled
    #[arg(long)]
    pub ablate: bool,
    /// Times after which a job is overdue, 1min to 3years, repeated or with commas: under each the first overdue job by arrival comes
    /// before everything else
    #[arg(long, value_name = "TIME", value_delimiter = ',', action = ArgAction::Append, value_parser = humantime::parse_duration)]
    pub after: Vec<Duration>,
    /// Shares of its quota, above 0 to 1, repeated or with commas: under each the tenant that holds least below it comes first
    #[arg(long, value_name = "SHARE", value_delimiter = ',', action = ArgAction::Append,
        value_parser = flag_values::share)]
    pub floor: Vec<f64>,
    /// Lists as long as the task's; half as many longer ones
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = flag_values::whole::<u16>(2..=1000))]
    pub lists: u16,
    /// Others beside the tree under guards.
    #[command(flatten)]
    #[serde(flatten)]
    pub beside: AgainstFlag,
    /// Simulate lists under a sealed tree: the stability index of the last decisions, as the daemon's watch has it
    #[arg(long, help_heading = "Drift")]
    pub drift: bool,
    /// Decisions of a window; it slides by a twentieth
    #[arg(long, value_name = "N", requires = "drift", default_value_t = WINDOW_DEFAULT, help_heading = "Drift", value_parser = flag_values::whole::<u32>(u64::from(WINDOW_DECISIONS.0)..=u64::from(WINDOW_DECISIONS.1)))]
    pub window: u32,
    /// Index above which a window has drifted
    #[arg(long, value_name = "PSI", requires = "drift", default_value_t = PSI_LIMIT_DEFAULT, help_heading = "Drift", value_parser = flag_values::positive)]
    pub limit: f64,
    /// Lists of each workload that is generated
    #[arg(long, value_name = "N", requires = "drift", default_value_t = 20, help_heading = "Drift", value_parser = flag_values::whole::<u32>(1..=1000))]
    pub seeds: u32,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}
