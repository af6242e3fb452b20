//! What the small systems share: figures for the record, and draws.

use pleach_env::Seed;
pub(super) use pleach_experiments::error::Error;
use pleach_scheduler::portable_math::{exp, ln};
use rand::{Rng, RngExt as _};

pub(super) use crate::figures::{Benchmark, Effort, Figure, Reproduction, Target};

/// What a system gives: figures, and why the published one is not held.
pub(super) fn figures(figures: Vec<Figure>, why: &str) -> Result<Reproduction, Error> {
    Ok(Reproduction {
        figures,
        findings: vec![why.into()],
        ..Reproduction::default()
    })
}

/// A figure of which nothing is drawn.
pub(super) fn exact(what: impl Into<String>, value: f64) -> Figure {
    Figure::exact(what, value, Target::Record)
}

/// A figure over 20 lists, each from its random numbers.
pub(super) fn drawn(what: impl Into<String>, effort: &Effort, of: impl Fn(Seed) -> f64) -> Figure {
    let values: Vec<f64> = effort.seeds(20).into_iter().map(of).collect();
    Figure::of(what, &values, Target::Record)
}

/// Uniform in its logarithm.
pub(super) fn log_uniform(low: f64, high: f64, rng: &mut impl Rng) -> f64 {
    exp(rng.random_range(ln(low)..ln(high)))
}

/// The largest of some numbers, none of them below 0.
pub(super) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

/// The smallest of some numbers.
pub(super) fn smallest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}
