//! The Philly study.

use super::Benchmark;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[];
