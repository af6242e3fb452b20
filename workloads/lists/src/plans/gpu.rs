//! What is known of GPU types: peaks, memory, the fabric in which they are sold.
//!
//! # Source
//! SemiAnalysisAI/InferenceX-app, `gpu-specs.ts` of April 2026, and vendors' sheets: dense peaks without sparsity.
//! Grace-Blackwell types are counted as their own.

use std::sync::LazyLock;

use super::precision::Precision;
use crate::embedded::{number, rows};

/// A GPU type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Name as a beginning of those in clusters, in capital letters and digits.
    pub name: &'static str,
    /// Memory as it is sold, GB.
    pub memory_gb: f64,
    /// Peak in 16, 8 and 4 bits, TFLOP/s; 0 = not built for it.
    tflops: [f64; 3],
    /// Fabric of a cluster that names none, a preset of [`pleach_scheduler::physics::links::Fabric`].
    pub fabric: &'static str,
    /// The type whose measured levels hold for it.
    measured_as: &'static str,
}

/// All types; longer names stand before their beginnings.
pub static GPUS: LazyLock<Vec<Gpu>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../data/gpus.csv"));
    let read = rows.map(
        |[name, memory_gb, bf16, fp8, fp4, fabric, measured_as]: [&'static str; 7]| Gpu {
            name,
            memory_gb: number(memory_gb),
            tflops: [bf16, fp8, fp4].map(number),
            fabric,
            measured_as: if measured_as.is_empty() { name } else { measured_as },
        },
    );
    read.collect()
});

impl Gpu {
    /// The type that a cluster calls so; none for an unknown name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Gpu> {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let letters = letters.to_ascii_uppercase();
        GPUS.iter().find(|gpu| letters.starts_with(gpu.name))
    }

    /// Peak, FLOP/s; 0 where it has none.
    #[must_use]
    pub fn peak(&self, precision: Precision) -> f64 {
        let tflops = match precision {
            Precision::Bf16 => self.tflops[0],
            Precision::Fp8 | Precision::Mxfp8 => self.tflops[1],
            Precision::Nvfp4 => self.tflops[2],
        };
        tflops * 1e12
    }

    /// The type whose measured levels hold for it.
    pub(super) fn measured_as(&self) -> &'static str {
        self.measured_as
    }
}
