//! `pleach tournament`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use pleach_experiments::evaluate::workload_source::WorkloadSource;
use pleach_experiments::tournament::{Condition, WORKLOADS};

/// Jobs of a generated workload, unless asked for.
const NUM_JOBS: u32 = 200;
/// Offered load of a generated workload, unless asked for: somebody waits.
const LOAD: f64 = 1.2;

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
    /// Jobs of each workload [default: 200 that are generated, all of a trace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub num_jobs: Option<u32>,
    /// Offered load [default: 1.2 of generated workloads, so that somebody waits; a trace's own]
    #[arg(long, value_name = "LOAD", value_parser = super::number::load)]
    pub load: Option<f64>,
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
    /// Run times guessed from ended jobs, each start costs 10 s
    Realistic,
    /// Run times known, each start costs 10 s
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
    /// All workloads at once, to be checked.
    #[must_use]
    pub fn whole(&self) -> WorkloadSource {
        let names = if self.workload.is_empty() {
            WORKLOADS.map(str::to_string).to_vec()
        } else {
            self.workload.clone()
        };
        WorkloadSource {
            workload: names,
            format: self.format,
            cluster: self.cluster.clone(),
            from_day: self.from_day,
            days: self.days,
            num_jobs: self.num_jobs,
            load: self.load,
            ..WorkloadSource::default()
        }
    }

    /// One source for each workload. A trace keeps all its jobs and its own load where nothing else is asked for.
    #[must_use]
    pub fn sources(&self) -> Vec<WorkloadSource> {
        let whole = self.whole();
        let source = |name: &String| {
            let is_generated = !WorkloadSource::is_file(name);
            WorkloadSource {
                workload: vec![name.clone()],
                num_jobs: self.num_jobs.or(is_generated.then_some(NUM_JOBS)),
                load: self.load.or(is_generated.then_some(LOAD)),
                ..whole.clone()
            }
        };
        whole.workload.iter().map(source).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use clap::Parser as _;

    #[test]
    fn generated_lists_are_short_and_loaded_and_a_trace_is_as_it_is_unless_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, "").unwrap();
        let sources = |flags: &str| {
            let line = format!(
                "pleach tournament --workload philly-like,{} {flags}",
                path.display()
            );
            match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
                Command::Tournament(args) => args
                    .sources()
                    .iter()
                    .map(|source| (source.num_jobs, source.load))
                    .collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(sources(""), [(Some(200), Some(1.2)), (None, None)]);
        assert_eq!(
            sources("--num-jobs 50 --load 2"),
            [(Some(50), Some(2.0)), (Some(50), Some(2.0))]
        );
    }
}
