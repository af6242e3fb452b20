//! `pleach watch`: flags.

use std::path::PathBuf;

use super::verify::RecordFlags;
use super::{QuietFlag, SeedFlag};
use clap::Args;

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
    /// The record and how it was made.
    #[command(flatten)]
    pub made: RecordFlags,
    /// Where the page is written
    #[arg(long, value_name = "FILE", default_value = "watch.html")]
    pub out: PathBuf,
    /// Where draws come from.
    #[command(flatten)]
    pub draws: SeedFlag,
    /// Nothing but errors.
    #[command(flatten)]
    pub quiet: QuietFlag,
}
