//! `pleach watch`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::schedule::RecordSettings;
use pleach_experiments::{EvaluationConfig, SchedulingConfig, WorkloadSource};

use super::{QuietFlag, SeedFlag};

/// Makes a page on which a schedule can be watched: a time to slide along or to play, the GPUs of all nodes, the queue beside them,
/// figures running along, two policies in step. A click on a job says where it stands. A record of this version says
/// itself how it was made. Flags go before that; of an older record give those of the `pleach evaluate` that wrote it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach evaluate --workload philly-like --policy fifo,srtf --preemption --num-jobs 1000 --seeds 1 --schedule schedule.csv
  pleach watch schedule.csv --out watch.html

The page needs a browser and no network. Its address may name a moment and a job: watch.html#t=3600&job=17. Of several lists or seeds
the first is shown; at most six policies, 300,000 segments and 16,384 GPUs.")]
pub struct WatchArgs {
    /// The record: CSV, plain or gzipped, or Parquet
    #[arg(value_name = "FILE")]
    pub record: PathBuf,
    /// Where the page is written
    #[arg(long, value_name = "FILE", default_value = "watch.html")]
    pub out: PathBuf,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler could do.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seeds that the record was made with, 1 to 10,000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = flag_values::whole::<u32>(1..=10_000))]
    pub seeds: u32,
    /// Where draws come from.
    #[command(flatten)]
    pub draws: SeedFlag,
    /// Nothing but errors.
    #[command(flatten)]
    pub quiet: QuietFlag,
}

impl WatchArgs {
    /// What flags say of how the record was made.
    #[must_use]
    pub fn settings(&self) -> RecordSettings {
        RecordSettings::of(&EvaluationConfig {
            workload: self.workload.clone(),
            scheduling: self.scheduling.clone(),
            seeds: self.seeds,
            seed: self.draws.seed,
            ..EvaluationConfig::default()
        })
    }
}
