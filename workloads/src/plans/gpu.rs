//! What is known of GPU types: peaks, memory, the fabric in which they are sold.
//!
//! # Source
//! Vendors' sheets: dense peaks without sparsity. Grace-Blackwell types are counted as their own.

use super::stack::{Precision, STACKS, Stack};

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

const fn gpu(name: &'static str, memory_gb: f64, tflops: [f64; 3], fabric: &'static str) -> Gpu {
    Gpu {
        name,
        memory_gb,
        tflops,
        fabric,
        measured_as: name,
    }
}

/// A type of the same chip with fewer links.
const fn as_measured(gpu: Gpu, measured_as: &'static str) -> Gpu {
    Gpu { measured_as, ..gpu }
}

/// All types; longer names stand before their beginnings.
pub const GPUS: [Gpu; 16] = [
    gpu("GB300", 288.0, [2500.0, 5000.0, 15_000.0], "gb300-nvl72"),
    gpu("GB200", 186.0, [2500.0, 5000.0, 10_000.0], "gb200-nvl72"),
    gpu("B300", 288.0, [2250.0, 4500.0, 13_500.0], "b300-xdr"),
    gpu("B200", 180.0, [2250.0, 4500.0, 9000.0], "b200-ndr"),
    as_measured(gpu("H200", 141.0, [989.0, 1979.0, 0.0], "h200-ndr"), "H100"),
    gpu("H100", 80.0, [989.0, 1979.0, 0.0], "hgx-h100-ndr"),
    as_measured(gpu("H800", 80.0, [989.0, 1979.0, 0.0], "alibaba-hpn"), "H100"),
    gpu("H20", 96.0, [148.0, 296.0, 0.0], "alibaba-hpn"),
    gpu("A100", 80.0, [312.0, 0.0, 0.0], "dgx-a100-hdr"),
    as_measured(gpu("A800", 80.0, [312.0, 0.0, 0.0], "dgx-a100-hdr"), "A100"),
    gpu("A10", 24.0, [125.0, 0.0, 0.0], "t4-pcie"),
    gpu("L40S", 48.0, [362.0, 733.0, 0.0], "t4-pcie"),
    gpu("V100", 32.0, [125.0, 0.0, 0.0], "v100-p3dn"),
    gpu("RTX3090", 24.0, [71.0, 0.0, 0.0], "t4-pcie"),
    gpu("RTX4090", 24.0, [165.0, 330.0, 0.0], "t4-pcie"),
    gpu("T4", 16.0, [65.0, 0.0, 0.0], "t4-pcie"),
];

impl Gpu {
    /// The type that a cluster calls so; none where nobody knows.
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

    /// The level of this type in 16 bits: of the stack by which it is known, or of none.
    #[must_use]
    pub fn level(&self) -> f64 {
        let known = |stack: &&Stack| {
            stack.is_usual && stack.gpu == self.measured_as && stack.precision == Precision::Bf16
        };
        STACKS
            .iter()
            .find(known)
            .map_or(Stack::LEVEL_ASSUMED, |stack| stack.level)
    }
}
