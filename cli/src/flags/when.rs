//! `pleach when`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::SchedulingConfig;
use pleach_experiments::command::flags::PageFlag;
use pleach_experiments::evaluate::{day, flag_values};
use pleach_experiments::when::Ask;

use super::ReportFlags;

/// When a job would start: the chance to start at once, the median, an interval and how well such intervals held here lately, and
/// what would be gained by asking for less. The queue is replayed many times under the site's own policy, and earlier forecasts
/// correct the replays; where plain history does better, it answers.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach when site.toml --gpus 8 --time 12h
  pleach when month.csv --gpus 4 --at 1800000 --json answer.json
  pleach when month.csv --hindcast --html hindcast.html         how good were forecasts here?

A list that does not say when its jobs began is played under the policy first.")]
pub struct WhenArgs {
    /// A site's site.toml, or a list: a file with jobs or the name of a workload; or http://HOST:PORT, a daemon's metrics, for --job,
    /// or --gpus and --time
    #[arg(value_name = "LIST")]
    pub list: String,
    /// GPUs of the job
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=1_048_576), required_unless_present_any = ["hindcast", "job", "answers"])]
    pub gpus: Option<u32>,
    /// Instead of a new job one that waits at the instant, by its id in the list: why it waits, and until when
    #[arg(long, value_name = "ID", conflicts_with_all = ["gpus", "time", "nodes", "partition", "type", "user"])]
    pub job: Option<String>,
    /// Its time limit, such as 12h or 2d [default: none]
    #[arg(long, value_name = "TIME", value_parser = day::days)]
    pub time: Option<f64>,
    /// Its nodes, each with as many of its GPUs [default: as few as it takes]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=65_535))]
    pub nodes: Option<u32>,
    /// Its partition or queue, as the list names it [default: that of the user's last job]
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Its GPU type [default: any]
    #[arg(long, value_name = "NAME")]
    pub r#type: Option<String>,
    /// Its user, as the list names it: run times of earlier jobs, account and quality of service are taken from there
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The instant, in seconds of the list [default: the end of the list]
    #[arg(long, value_name = "S", value_parser = flag_values::not_negative)]
    pub at: Option<f64>,
    /// Score the forecasts of the weeks before instead, day by day, beside simpler ones
    #[arg(long, conflicts_with_all = ["gpus", "job", "time", "nodes", "partition", "type", "user"])]
    pub hindcast: bool,
    /// Forecast all jobs that wait instead, and usual requests, into a file for daemons: when.json in their folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hindcast", "gpus", "job", "time", "nodes", "partition", "type", "user"])]
    pub answers: Option<PathBuf>,
    /// Read the list and write that file anew so often, such as 1m [default: once]
    #[arg(long, value_name = "TIME", value_parser = day::days, requires = "answers")]
    pub every: Option<f64>,
    /// What answers: replay, history, or auto for what did better here
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = ["auto", "replay", "history"])]
    pub method: String,
    /// The site's policy, by name or file [default: that of site.toml, or that the list's records name, else easy]
    #[arg(long, value_name = "NAME|PATH", help_heading = "Scheduling")]
    pub policy: Option<String>,
    /// Cluster: a description in TOML or JSON, or nodes x GPUs : type [default: the list's own]
    #[arg(long, value_name = "FILE|NxG:TYPE")]
    pub cluster: Option<PathBuf>,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Results for readers.
    #[command(flatten)]
    pub page: PageFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

impl WhenArgs {
    /// What the job asks for.
    #[must_use]
    pub fn ask(&self) -> Ask {
        Ask {
            gpus: self.gpus.unwrap_or(1),
            time_s: self.time.map(|days| days * day::DAY_S),
            nodes: self.nodes,
            partition: self.partition.clone(),
            gpu_type: self.r#type.clone(),
            user: self.user.clone(),
            job: self.job.clone(),
            instead: None,
        }
    }
}
