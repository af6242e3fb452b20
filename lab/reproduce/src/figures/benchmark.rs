//! What a benchmark is, how much of it is run, and what it gives.

use std::path::PathBuf;

use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::seeds;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::plot::Plot;
use pleach_experiments::progress::Watcher;
use serde::Serialize;

use super::Figure;

/// How much is run.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Root of all randomness.
    pub seed: u64,
    /// Seeds for each point; none = the benchmark's own.
    pub num_seeds: Option<usize>,
    /// Cut the set-up down to a few small points: to see that it runs, not to trust the figures.
    pub smoke: bool,
    /// Folder with published job lists, for the benchmarks that can use them.
    pub data: Option<PathBuf>,
    /// Receives progress, and may end the work.
    pub watcher: Watcher,
}

impl Effort {
    /// The seeds of each point: those asked for, or so many; one in a smoke run.
    #[must_use]
    pub fn seeds(&self, default: usize) -> Vec<Seed> {
        let num = if self.smoke {
            1
        } else {
            self.num_seeds.unwrap_or(default)
        };
        seeds(self.seed, "test", num)
    }

    /// `full`, or `small` in a smoke run.
    #[must_use]
    pub fn size<T>(&self, full: T, small: T) -> T {
        if self.smoke { small } else { full }
    }
}

/// A published result that can be run again.
#[derive(Clone, Copy, Debug)]
pub struct Benchmark {
    /// Short name, for the command line.
    pub id: &'static str,
    /// What is reproduced.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Cluster, jobs, load and what is left out, in words.
    pub setup: &'static str,
    /// Runs it.
    pub run: fn(&Effort) -> Result<Reproduction, Error>,
}

/// Figures, tables, plots and findings of one benchmark.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reproduction {
    /// Published figures beside ours.
    pub figures: Vec<Figure>,
    /// Further tables with their headings.
    #[serde(skip)]
    pub tables: Vec<(String, Table)>,
    /// Plots with their headings, as SVG.
    #[serde(skip)]
    pub plots: Vec<(String, Plot)>,
    /// What we found with the default seeds where a figure was missed, and what the reader should know. Not shown after a
    /// smoke run, of which it says nothing.
    pub findings: Vec<String>,
}
