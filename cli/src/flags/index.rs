//! `pleach index`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use pleach_experiments::evaluate::flag_values;

use super::tournament::ConditionFlag;
use super::{ForceFlag, MachineFlags, SeedFlag};

/// Learns a linear index: the formula by which the planner `index` deals GPUs, found by evolution on lists of several kinds and
/// loads, where run times are known and stopping is free, and where they are guessed and it costs.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach index --to mine.json                                 a few minutes
  pleach index --to ours.json --from checkpoints/reference/index.json --workload week.csv --condition realistic --generations 30
  pleach index --to blind.json --without rest,rest_trust,service_trust,gang_trust        without estimates of run times
  pleach evaluate --workload gavel-multi --preemption --sharing mps --policy las-deal,index,mine.json")]
pub struct IndexArgs {
    /// Formula to write, NAME.json
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Formula to begin with [default: least attained service, with weights by hand]
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Presets, environment ids or lists of your own, repeated or with commas; of a list the last three tenths validate
    /// [default: Pleach/Philly-v0,helios-like,gavel-multi,sia-philly,pollux,acme-like]
    #[arg(long, value_name = "PRESET", value_delimiter = ',', action = ArgAction::Append)]
    pub workload: Vec<String>,
    /// Offered loads, repeated or with commas [default: 0.3,0.6,1.2,2; a list's own]
    #[arg(long, value_name = "LOAD", value_delimiter = ',', action = ArgAction::Append, value_parser = flag_values::load)]
    pub load: Vec<f64>,
    /// Conditions.
    #[command(flatten)]
    pub conditions: ConditionFlag,
    /// Jobs of a list
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub num_jobs: u32,
    /// Generations
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub generations: u32,
    /// Candidates of a generation
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(4..=1000))]
    pub population: u16,
    /// Lists of a generation
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub lists: u16,
    /// Validation lists of each kind and load
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub validation_lists: u16,
    /// Columns of a deal that are to weigh nothing, repeated or with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', action = ArgAction::Append)]
    pub without: Vec<String>,
    /// How far weights move at first, over what is usual, 0.01 to 10: less than 1 where --from is good already
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = flag_values::step)]
    pub step: f64,
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
