//! Levels: which part of a GPU's peak the software gets of a wide model without traffic.
//!
//! One level for each (GPU, precision, software), fitted to the published rows of that software; everything else of
//! [`super::time`] is the same for all. `rows_tests.rs` fits them again and prints the errors.
//!
//! # Source
//! The benchmarking page of llm-foundry (MosaicML); Narayanan et al. (SC'21) table 1; Korthikanti et al. (MLSys'23) table 5;
//! MegaScale (NSDI'24) table 2, both columns; Llama 3 (arXiv 2407.21783) table 4; Megatron-LM's page on scaling; the performance
//! summaries 25.09 to 26.08 of NVIDIA's Megatron-Bridge.

/// Numbers in which a training computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 16 bits.
    Bf16,
    /// 8 bits, one scale a tensor.
    Fp8,
    /// 8 bits, one scale for each 32 numbers.
    Mxfp8,
    /// 4 bits.
    Nvfp4,
}

/// A software on a GPU type at a precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stack {
    /// The software.
    pub name: &'static str,
    /// The GPU type, a name of [`super::GPUS`].
    pub gpu: &'static str,
    /// What it computes in.
    pub precision: Precision,
    /// Part of the peak, (0, 1].
    pub level: f64,
    /// Published rows, and the root of the mean square of the logarithm of time over them.
    pub num_rows: u32,
    /// That error.
    pub error: f64,
    /// Whether the source counts attention as if it looked at the whole sequence.
    pub is_attention_whole: bool,
    /// Whether this stands for its type and precision where nobody names a software.
    pub is_usual: bool,
}

impl Stack {
    /// Level of a type of which no row is published. *Assumed*.
    pub const LEVEL_ASSUMED: f64 = 0.5;
}

/// Rows whose source counts all of attention.
const WHOLE: bool = true;
/// Rows whose source counts the half that is looked at.
const HALF: bool = false;

const fn stack(
    name: &'static str,
    gpu: &'static str,
    precision: Precision,
    level: f64,
    (num_rows, error): (u32, f64),
    is_attention_whole: bool,
) -> Stack {
    Stack {
        name,
        gpu,
        precision,
        level,
        num_rows,
        error,
        is_attention_whole,
        is_usual: false,
    }
}

const fn usual(stack: Stack) -> Stack {
    Stack {
        is_usual: true,
        ..stack
    }
}

use Precision::{Bf16, Fp8, Mxfp8, Nvfp4};

/// All stacks of dense models.
#[rustfmt::skip]
pub const STACKS: [Stack; 17] = [
    stack("llm-foundry", "A100-40", Bf16, 0.777, (67, 0.064), WHOLE),
    stack("llm-foundry", "A100", Bf16, 0.825, (41, 0.083), WHOLE),
    stack("llm-foundry", "H100", Bf16, 0.584, (58, 0.084), WHOLE),
    stack("megatron-2021", "A100", Bf16, 0.555, (10, 0.044), WHOLE),
    stack("megatron-2022", "A100", Bf16, 0.583, (4, 0.110), WHOLE),
    usual(stack("megatron-2023", "A100", Bf16, 0.53, (8, 0.056), WHOLE)),
    stack("megascale", "A100", Bf16, 0.682, (8, 0.042), WHOLE),
    usual(stack("llama-3", "H100", Bf16, 0.506, (2, 0.003), HALF)),
    stack("megatron-2024", "H100", Bf16, 0.611, (2, 0.138), WHOLE),
    usual(stack("megatron-bridge", "H100", Fp8, 0.447, (15, 0.059), HALF)),
    usual(stack("megatron-bridge", "B200", Fp8, 0.421, (4, 0.030), HALF)),
    usual(stack("megatron-bridge", "GB200", Fp8, 0.444, (17, 0.081), HALF)),
    usual(stack("megatron-bridge", "GB200", Mxfp8, 0.403, (11, 0.066), HALF)),
    usual(stack("megatron-bridge", "GB200", Nvfp4, 0.279, (9, 0.137), HALF)),
    usual(stack("megatron-bridge", "GB300", Fp8, 0.551, (14, 0.083), HALF)),
    usual(stack("megatron-bridge", "GB300", Mxfp8, 0.512, (11, 0.085), HALF)),
    usual(stack("megatron-bridge", "GB300", Nvfp4, 0.256, (9, 0.049), HALF)),
];
