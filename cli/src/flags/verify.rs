//! `pleach verify`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_env::schedule::Record;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::schedule::RecordSettings;
use pleach_experiments::{EvaluationConfig, SchedulingConfig, WorkloadSource};

use super::ReportFlags;

/// Checks the record of a schedule against its cluster and its jobs, with a validator that is no part of the simulator: what each
/// job held, whole gangs, arrivals, types, memory, quotas, work, rates, costs of starts, ends. A record of this version says itself how
/// it was made. Flags go before that; of an older record give those of the `pleach evaluate` that wrote it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach evaluate --workload philly-like --policy fifo,srtf --preemption --seeds 2 --schedule schedule.parquet
  pleach verify schedule.parquet
  pleach verify schedule.parquet --replay
  pleach verify old.csv --workload jobs.csv --cluster cluster.toml

Exits with 1 where a rule is broken, with 2 where a file cannot be used. Columns and rules: docs/schedule-record.md.")]
pub struct VerifyArgs {
    /// The record and how it was made.
    #[command(flatten)]
    pub made: RecordFlags,
    /// Also play the policies that the record names again, and refuse a record that they do not make
    #[arg(long)]
    pub replay: bool,
    /// The record was taken from a real cluster: believe its rates, the costs of its starts, how jobs ended and what they lost
    #[arg(long, conflicts_with = "replay")]
    pub observed: bool,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}

/// A record, and what says how it was made where it does not say so itself.
#[derive(Args, Clone, Debug)]
pub struct RecordFlags {
    /// The record: CSV, plain or gzipped, or Parquet
    #[arg(value_name = "FILE")]
    pub record: PathBuf,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler could do.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seeds that the record was made with, 1 to 10,000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = flag_values::whole::<u32>(1..=10_000))]
    pub seeds: u32,
}

impl RecordFlags {
    /// The record, how it was made, and what is to be said of that.
    ///
    /// # Errors
    /// A file that is no record, flags that it does not fit.
    pub fn open(&self, seed: u64) -> Result<(Record, RecordSettings, Vec<String>), Error> {
        let record = Record::read(&self.record)?;
        let flags = RecordSettings::of(&EvaluationConfig {
            workload: self.workload.clone(),
            scheduling: self.scheduling.clone(),
            seeds: self.seeds,
            seed,
            ..EvaluationConfig::default()
        });
        let (settings, told) = RecordSettings::of_record(&record, flags)?;
        Ok((record, settings, told.into_iter().collect()))
    }
}
