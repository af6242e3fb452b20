//! Published figures, run again: for each benchmark the set-up, the published number, ours with its interval, the tolerance
//! that was stated beforehand, and whether it holds.
//!
//! A benchmark is a function from an [`Effort`] to a [`Reproduction`]. What it simulates goes through [`runs`], so that all
//! of them use the same clusters, planners and seeds as `pleach evaluate`; what it shows through [`figure`] and [`plot`].
//!
//! # What is deliberately not here
//! Models bent to meet a figure: one that is missed is printed as missed, with the reason where we know it.

pub mod figure;
pub mod page;
pub mod plot;
pub mod runs;

mod elastic;
mod gavel;
mod hadar;
mod packing;
mod philly;
mod prediction;
mod sharing;
mod synergy;
mod tiresias;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use pleach_env::seed::Seed;

pub use figure::{Figure, Target};
pub use page::Reproduction;
pub use plot::Series;
pub use runs::{Run, run_all};

use crate::error::Error;
use crate::evaluate::instances::seeds;
use crate::progress::Watcher;

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
    /// Who watches.
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

/// The lines of work.
const LINES: [&[Benchmark]; 9] = [
    synergy::BENCHMARKS,
    gavel::BENCHMARKS,
    hadar::BENCHMARKS,
    tiresias::BENCHMARKS,
    elastic::BENCHMARKS,
    sharing::BENCHMARKS,
    prediction::BENCHMARKS,
    philly::BENCHMARKS,
    packing::BENCHMARKS,
];

/// All benchmarks.
pub fn benchmarks() -> impl Iterator<Item = &'static Benchmark> {
    LINES.into_iter().flatten()
}

/// The benchmark of an id, whatever its case.
///
/// # Errors
/// An unknown id; the error lists the known ones.
pub fn find(id: &str) -> Result<&'static Benchmark, Error> {
    let found = benchmarks().find(|benchmark| benchmark.id.eq_ignore_ascii_case(id));
    found.ok_or_else(|| {
        let known: Vec<&str> = benchmarks().map(|benchmark| benchmark.id).collect();
        Error::config(
            "id",
            id,
            known.join(", "),
            "pleach reproduce without an id lists them.",
        )
    })
}
