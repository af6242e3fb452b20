//! `pleach tournament`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::evaluate::WorkloadSource;
use crate::tournament::{Condition, WORKLOADS};

/// Plays all schedulers against each other on several kinds of workloads. Each gets the capabilities that it asks for
/// (preemption, sharing, mixed types), so whole systems are compared; evaluate compares policies on one cluster.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach tournament --html tournament.html              everyone, six workloads, two conditions
  pleach tournament --workload gavel-multi --policy srtf,tiresias --condition ideal
  pleach tournament --workload trace.csv --format philly --from-day 30 --days 2 --seeds 1")]
pub struct TournamentArgs {
    /// Who plays, repeated or with commas [default: every heuristic and planner but hadare, whose jobs train as averaged copies]
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append)]
    pub policy: Vec<String>,
    /// Presets, environment ids or trace files, repeated or with commas [default: six presets]
    #[arg(long, value_name = "FILE|PRESET", value_delimiter = ',', action = ArgAction::Append)]
    pub workload: Vec<String>,
    /// What the schedulers know and what moving a job costs
    #[arg(long, value_name = "WORD", value_delimiter = ',', action = ArgAction::Append, default_values = ["ideal", "realistic"])]
    pub condition: Vec<ConditionArg>,
    /// Seeds for each workload
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Jobs of each workload
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub num_jobs: u32,
    /// Offered load of generated workloads, so that somebody waits
    #[arg(long, value_name = "LOAD", default_value_t = 1.2, value_parser = super::number::load)]
    pub load: f64,
    /// Layout of trace files [default: by the file's first lines]
    #[arg(long, value_name = "FORMAT", value_parser = super::evaluate::format())]
    pub format: Option<pleach_env::workload::import::Format>,
    /// Cluster description in TOML or JSON [default: the workload's own]
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// First day of a trace to take, from 0
    #[arg(long, value_name = "DAY", value_parser = super::number::not_negative)]
    pub from_day: Option<f64>,
    /// Days of a trace to take
    #[arg(long, value_name = "DAYS", value_parser = super::number::positive)]
    pub days: Option<f64>,
    /// Root of all randomness
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Also write all tables as one page to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Also write the standings as JSON to this file (schema in docs/cli.md)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Threads to use [default: all cores]. Only the times of plans depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Machine")]
    pub threads: Option<u16>,
    /// No progress bar and no tables; errors only
    #[arg(long, short, help_heading = "Machine")]
    pub quiet: bool,
}

/// Conditions on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConditionArg {
    /// Run times known, starting and stopping free
    Ideal,
    /// Run times guessed from ended jobs, starting and stopping cost by state size
    Realistic,
    /// Run times known, starting and stopping cost
    Overheads,
    /// Run times guessed, starting and stopping free
    Estimates,
}

impl From<ConditionArg> for Condition {
    fn from(arg: ConditionArg) -> Condition {
        match arg {
            ConditionArg::Ideal => Condition::Ideal,
            ConditionArg::Realistic => Condition::Realistic,
            ConditionArg::Overheads => Condition::Overheads,
            ConditionArg::Estimates => Condition::Estimates,
        }
    }
}

impl TournamentArgs {
    /// One source for each workload.
    #[must_use]
    pub fn sources(&self) -> Vec<WorkloadSource> {
        let names: Vec<String> = if self.workload.is_empty() {
            WORKLOADS.map(str::to_string).to_vec()
        } else {
            self.workload.clone()
        };
        let source = |name: String| {
            let is_file = std::path::Path::new(&name).exists();
            WorkloadSource {
                workload: vec![name],
                format: self.format,
                cluster: self.cluster.clone(),
                from_day: self.from_day,
                days: self.days,
                num_jobs: Some(self.num_jobs),
                // A trace keeps its own load.
                load: (!is_file).then_some(self.load),
                ..WorkloadSource::default()
            }
        };
        names.into_iter().map(source).collect()
    }
}
