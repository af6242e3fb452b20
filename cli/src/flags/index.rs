//! `pleach index`: flags.

use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{ArgAction, Args};
use pleach_experiments::evaluate::condition::ConditionFlag;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::{SchedulingConfig, WorkloadSource};

use super::{ForceFlag, MachineFlags, SeedFlag};

/// Learns a linear index: the formula by which the planner `index` deals GPUs, found by evolution on lists of several kinds and
/// loads, where run times are known and stopping is free, and where they are guessed and it costs.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("workload", |names| names.default_value(Resettable::Reset).help("Presets, environment ids or lists of your own, \
    repeated or with commas; of a list the first six tenths of the jobs train, the next two choose, the last two are left for \
    evaluate [default: Pleach/Philly-v0,helios-like,gavel-multi,sia-philly,pollux,acme-like]")))]
#[command(mut_arg("condition", |words| words.conflicts_with("SchedulingConfig")))]
#[command(after_help = "\
Examples:
  pleach index --to mine.json                                 a few minutes
  pleach index --to ours.json --from checkpoints/reference/index.json --workload week.csv --condition realistic --generations 30
  pleach index --to month.json --workload month.csv --cluster 16x8:A100 --estimates history --preemption
  pleach index --to blind.json --without rest,rest_trust,service_trust,gang_trust        without estimates of run times
  pleach evaluate --workload gavel-multi --preemption --sharing mps --policy las-deal,index,mine.json")]
pub struct IndexArgs {
    /// Formula to write, NAME.json
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub to: PathBuf,
    /// Formula to begin with [default: least attained service, with weights by hand]
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Several offered loads in turn, repeated or with commas [default: 0.3,0.6,1.2,2; a list's own]
    #[arg(long, value_name = "LOAD", value_delimiter = ',', action = ArgAction::Append, value_parser = flag_values::load, conflicts_with = "load")]
    pub loads: Vec<f64>,
    /// Conditions.
    #[command(flatten)]
    pub conditions: ConditionFlag,
    /// Generations
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = flag_values::whole::<u32>(1..=100_000))]
    pub generations: u32,
    /// Candidates of a generation
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = flag_values::whole::<u16>(4..=1000))]
    pub population: u16,
    /// Lists of a generation
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = flag_values::whole::<u16>(1..=1000))]
    pub lists: u16,
    /// Validation lists of each kind and load
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = flag_values::whole::<u16>(1..=1000))]
    pub validation_lists: u16,
    /// Columns of a deal that are to weigh nothing, repeated or with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', action = ArgAction::Append)]
    pub without: Vec<String>,
    /// How far weights move at first, over what is usual, 0.01 to 10: less than 1 where --from is good already
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = flag_values::step)]
    pub step: f64,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows, in place of the conditions.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Where draws come from.
    #[command(flatten)]
    pub draws: SeedFlag,
    /// Whether it may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// This machine.
    #[command(flatten)]
    pub machine: MachineFlags,
}
