//! `pleach suite`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use pleach_experiments::command::flags::{ReportFlags, SettingsFlags};
use pleach_experiments::evaluate::flag_values;

/// Trains on several kinds of clusters and plays the result against every scheduler with the same knowledge and capabilities, on
/// held-out workloads, on lists four times as long, and on jobs of a kind that no network was trained on.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach suite                                          all tasks, five trainings each; goes on where it was stopped
  pleach suite --task Pleach/GavelMulti-v1 --trainings 1
  pleach suite --config mine.toml --out runs/mine       the same with settings of your own
  pleach suite --set train.learner=ppo --stages 1 --out runs/ppo
                                                        the other learner, on the task's lists only
  pleach suite --smoke                                  a minute of everything, for a look

A ratio is the interquartile mean over trainings and workloads of average JCT over that of the best baseline on the same
workloads, with a 95 % bootstrap interval over both; below 1 the learned policies are better.")]
pub struct SuiteArgs {
    /// Tasks by id, repeated or with commas [default: all]
    #[arg(long, value_name = "ID", value_delimiter = ',', action = ArgAction::Append)]
    pub task: Vec<String>,
    /// Trainings of each task, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = flag_values::whole::<u32>(1..=100))]
    pub trainings: u32,
    /// Held-out workloads of each kind; half as many of the long ones
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = flag_values::whole::<u32>(2..=10_000))]
    pub workloads: u32,
    /// Stages of a training: 1 for lists as long as the task's only, 2 to go on with lists three times as long
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = flag_values::whole::<u8>(1..=2))]
    pub stages: u8,
    /// Settings of the learner [default of --config: experiments/configs/suite.toml]; the environment in it is not used.
    #[command(flatten)]
    pub settings: SettingsFlags,
    /// The settings of --config for the second stage; --set changes both [default: experiments/configs/suite-longer.toml]
    #[arg(long, value_name = "FILE")]
    pub config_longer: Option<PathBuf>,
    /// Few updates and workloads, to see that all works
    #[arg(long)]
    pub smoke: bool,
    /// Folder of the trainings, each in one of its own
    #[arg(
        long,
        value_name = "DIR",
        default_value = "runs/suite",
        help_heading = "Output"
    )]
    pub out: PathBuf,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}
