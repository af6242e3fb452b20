//! Published figures, run again: for each benchmark the set-up, the published number, ours with its interval, the tolerance
//! that was stated beforehand, and whether it holds.
//!
//! A benchmark is a function from an [`Effort`] to a [`Reproduction`]. What it simulates goes through [`runs`], so that all
//! of them use the same clusters, planners and seeds as `pleach evaluate`; what it shows through [`figure`] and [`plot`].
//!
//! # What is deliberately not here
//! Models bent to meet a figure: one that is missed is printed as missed, with the reason where we know it.

pub mod benchmark;
pub mod figure;
pub mod page;
pub mod plot;
pub mod runs;

mod compass;
mod dysta;
mod elastic;
mod esg;
mod gavel;
mod hadar;
mod miriam;
mod mixed;
mod packing;
mod pacml;
mod philly;
mod plans;
mod prediction;
mod replicas;
mod rubick;
mod sgprs;
mod sharing;
mod synergy;
mod systems;
mod tiresias;

#[cfg(test)]
mod tests;

pub use benchmark::{Benchmark, Effort, Reproduction};
pub use figure::{Figure, Target};

pub use plot::Series;
pub use runs::Run;
pub(crate) use runs::run_all;

use pleach_experiments::error::Error;

/// The lines of work.
const LINES: [&[Benchmark]; 20] = [
    synergy::BENCHMARKS,
    gavel::BENCHMARKS,
    hadar::BENCHMARKS,
    tiresias::BENCHMARKS,
    elastic::BENCHMARKS,
    sharing::BENCHMARKS,
    prediction::BENCHMARKS,
    philly::BENCHMARKS,
    packing::BENCHMARKS,
    rubick::BENCHMARKS,
    dysta::BENCHMARKS,
    compass::BENCHMARKS,
    sgprs::BENCHMARKS,
    miriam::BENCHMARKS,
    mixed::BENCHMARKS,
    esg::BENCHMARKS,
    replicas::BENCHMARKS,
    plans::BENCHMARKS,
    pacml::BENCHMARKS,
    systems::BENCHMARKS,
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
