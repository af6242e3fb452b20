//! `pleach explain`: flags.

use clap::Args;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::explain::{ExplainConfig, Moment, Question};
use pleach_experiments::{SchedulingConfig, WorkloadSource};

use super::{JsonFlag, SeedFlag, WorldFlag};

/// Tells in words why a tree did what it did on a list of jobs. The list is simulated under the tree; it is the first one of
/// `pleach evaluate` with the same flags and seed.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach explain tree.json                                     the first time that a job overtook another
  pleach explain tree.json --job 17                            the decision that started job 17
  pleach explain tree.json --decision 200                      any decision, by its number
  pleach explain tree.json --at 86400 --workload philly-like --load 0.9
  pleach explain tree.json --why-not 17                        why job 17 was passed over, and what would have changed that
  pleach explain tree.json --against sjf --json diff.json      where a heuristic would do something else

Numbers stand in the units of `pleach policies --features`. A counterfactual says what controls each feature that it changes.")]
pub struct ExplainArgs {
    /// A policy file with a tree or a formula, or the folder of a run with one
    #[arg(value_name = "TREE")]
    pub tree: String,
    /// Explain the decision that started this job, by its id in the list
    #[arg(long, value_name = "ID", conflicts_with_all = ["why_not", "against", "at", "decision"])]
    pub job: Option<String>,
    /// Explain the first decision at this time or later, in seconds of the list
    #[arg(long, value_name = "S", value_parser = flag_values::not_negative, conflicts_with_all = ["decision", "against"])]
    pub at: Option<f64>,
    /// Explain this decision, counted from 1
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u64>(1..=u64::MAX), conflicts_with = "against")]
    pub decision: Option<u64>,
    /// Explain why this job was passed over, and find the nearest change with which it would have been chosen: the first time, or
    /// at --at or --decision
    #[arg(long, value_name = "ID", conflicts_with = "against")]
    pub why_not: Option<String>,
    /// Count the decisions in which this heuristic would do something else, by kind
    #[arg(long, value_name = "HEURISTIC")]
    pub against: Option<String>,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// Settings of the world.
    #[command(flatten)]
    pub of_world: WorldFlag,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Where draws come from.
    #[command(flatten)]
    pub draws: SeedFlag,
    /// The answer for programs.
    #[command(flatten)]
    pub data: JsonFlag,
}

impl ExplainArgs {
    /// Which tree, on which list.
    #[must_use]
    pub fn config(&self) -> ExplainConfig {
        ExplainConfig {
            tree: self.tree.clone(),
            workload: self.workload.clone(),
            scheduling: self.scheduling.clone(),
            seed: self.draws.seed,
        }
    }

    /// What is asked.
    #[must_use]
    pub fn question(&self) -> Question {
        let moment = match (self.at, self.decision) {
            (Some(time_s), _) => Some(Moment::Time(time_s)),
            (None, number) => number.map(Moment::Number),
        };
        match (&self.job, &self.why_not, &self.against, moment) {
            (Some(job), ..) => Question::Job(job.clone()),
            (None, Some(job), _, moment) => Question::WhyNot(job.clone(), moment),
            (None, None, Some(name), _) => Question::Against(name.clone()),
            (None, None, None, Some(moment)) => Question::Decision(moment),
            (None, None, None, None) => Question::Overtaking,
        }
    }
}
