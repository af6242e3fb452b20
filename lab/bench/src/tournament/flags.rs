//! `pleach tournament`: flags.

use clap::builder::Resettable;
use clap::{ArgAction, Args};
use pleach_experiments::WorkloadSource;
use pleach_experiments::command::flags::{PageFlag, ReportFlags};
use pleach_experiments::evaluate::condition::ConditionFlag;
use pleach_experiments::evaluate::flag_values;

use super::WORKLOADS;

/// Jobs of a generated workload, unless asked for.
const NUM_JOBS: u32 = 200;
/// Offered load of a generated workload, unless asked for; high enough that jobs wait.
const LOAD: f64 = 1.2;

/// Plays all schedulers against each other on several kinds of workloads. Each gets the capabilities that it asks for
/// (preemption, sharing, mixed types), so whole systems are compared; evaluate compares policies on one cluster.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("workload", |names| names.default_value(Resettable::Reset)))]
#[command(after_help = "\
Examples:
  pleach tournament --html tournament.html              everyone, six workloads, two conditions
  pleach tournament --workload gavel-multi --policy srtf,tiresias --condition ideal
  pleach tournament --workload trace.csv --format philly --from-day 30 --days 2 --seeds 1

Without --workload six presets are played; 200 jobs of one that is generated, at load 1.2, so that jobs wait. A trace keeps its
jobs and its load.")]
pub struct TournamentArgs {
    /// Policies, repeated or with commas [default: every heuristic and planner but hadare, whose jobs train as averaged copies]
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append)]
    pub policy: Vec<String>,
    /// Conditions.
    #[command(flatten)]
    pub conditions: ConditionFlag,
    /// Seeds for each workload
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = flag_values::whole::<u32>(1..=1000))]
    pub seeds: u32,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// Results for readers.
    #[command(flatten)]
    pub page: PageFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

impl TournamentArgs {
    /// All workloads at once, to be checked.
    #[must_use]
    pub fn whole(&self) -> WorkloadSource {
        let mut whole = self.workload.clone();
        if whole.workload.is_empty() {
            whole.workload = WORKLOADS.map(str::to_string).to_vec();
        }
        whole
    }

    /// One source for each workload. A trace keeps all its jobs and its own load where nothing else is asked for.
    #[must_use]
    pub fn sources(&self) -> Vec<WorkloadSource> {
        let whole = self.whole();
        let source = |name: &String| {
            let is_generated = !WorkloadSource::is_file(name);
            WorkloadSource {
                workload: vec![name.clone()],
                num_jobs: whole.num_jobs.or(is_generated.then_some(NUM_JOBS)),
                load: whole.load.or(is_generated.then_some(LOAD)),
                ..whole.clone()
            }
        };
        whole.workload.iter().map(source).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _};

    use super::*;

    fn parsed(line: &str) -> TournamentArgs {
        let command = TournamentArgs::augment_args(Command::new("tournament"));
        let matches = command.try_get_matches_from(line.split_whitespace()).unwrap();
        TournamentArgs::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn generated_lists_are_short_and_loaded_and_a_trace_is_as_it_is_unless_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, "").unwrap();
        let sources = |flags: &str| {
            let line = format!("tournament --workload philly-like,{} {flags}", path.display());
            let sources = parsed(&line).sources().into_iter();
            sources
                .map(|source| (source.num_jobs, source.load))
                .collect::<Vec<_>>()
        };
        assert_eq!(sources(""), [(Some(200), Some(1.2)), (None, None)]);
        let args = parsed("tournament");
        assert_eq!(
            args.whole().workload,
            WORKLOADS,
            "not the list that evaluate plays"
        );
        assert_eq!(
            sources("--num-jobs 50 --load 2"),
            [(Some(50), Some(2.0)), (Some(50), Some(2.0))]
        );
    }
}
