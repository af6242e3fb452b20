//! Numbers in which trainings compute.

use serde::Deserialize;

/// Numbers in which a training computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 16 bits.
    #[default]
    Bf16,
    /// 8 bits, one scale a tensor.
    Fp8,
    /// 8 bits, one scale for each 32 numbers.
    Mxfp8,
    /// 4 bits.
    Nvfp4,
}

impl Precision {
    /// Each number of bits once.
    pub const EACH: [Precision; 3] = [Precision::Bf16, Precision::Fp8, Precision::Nvfp4];

    /// Bits of a number: levels do not tell 8 bits with one scale from 8 bits with many.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Precision::Bf16 => 16,
            Precision::Fp8 | Precision::Mxfp8 => 8,
            Precision::Nvfp4 => 4,
        }
    }
}
