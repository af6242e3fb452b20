//! `pleach report`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::command::flags::PageFlag;
use pleach_experiments::evaluate::day::Day;
use pleach_experiments::evaluate::flag_values;

use super::{JsonFlag, MachineFlags};

/// Holds what `pleach run` promised of a policy against the weeks since it went live: waits, completion times, slowdown and
/// fairness, by size and account, with intervals of drawing days. The same jobs in the twin stand beside it, in pairs of days.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach report sacct.txt --nodes nodes.txt --promise site-run/promise.json --since-day 2026-11-01
  pleach report pods.json --nodes nodes.json --promise site-run/promise.json --html report.html
  pleach report month.csv --margin 0.1 --json report.json

The list may begin before the policy went live: its queue then does too. Leave --since-day out where it does not.")]
pub struct ReportArgs {
    /// The accounting of the weeks since: what sacct or kubectl prints, a table, or a list that was imported
    #[arg(value_name = "JOBS")]
    pub jobs: PathBuf,
    /// What was promised, as `pleach run` wrote it; a policy that is a file lies beside it
    #[arg(long, value_name = "FILE", default_value = "site-run/promise.json")]
    pub promise: PathBuf,
    /// What may come on top of what was promised, as a part of it, 0 or more; the same as in the settings of a daemon
    #[arg(long, value_name = "PART", default_value_t = 0.2, value_parser = flag_values::not_negative)]
    pub margin: f64,
    /// Compare jobs that came on this day of the list or later, from 0, or from its date on (UTC): when the policy went live
    #[arg(long, value_name = "DAY|DATE", value_parser = Day::read)]
    pub since_day: Option<Day>,
    /// What scontrol show node, sinfo or kubectl get nodes -o json prints
    #[arg(long, value_name = "FILE")]
    pub nodes: Option<PathBuf>,
    /// How the table is read, in TOML [default: guessed from its header]
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// Cluster: a description in TOML or JSON, or nodes x GPUs : type [default: the nodes given, else those seen in the list]
    #[arg(long, value_name = "FILE|NxG:TYPE")]
    pub cluster: Option<PathBuf>,
    /// Results for readers.
    #[command(flatten)]
    pub page: PageFlag,
    /// Results for programs.
    #[command(flatten)]
    pub data: JsonFlag,
    /// This machine.
    #[command(flatten)]
    pub machine: MachineFlags,
}
