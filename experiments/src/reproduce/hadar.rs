//! Hadar and HadarE.

use super::Benchmark;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[];
