//! Levels: which part of a GPU's peak the software gets of a wide model without traffic.
//!
//! One level for each (GPU, precision, software), fitted to the published rows of that software; everything else of
//! [`super::time`] is the same for all. `rows_tests.rs` fits them again and prints the errors.
//!
//! # Source
//! The benchmarking page of llm-foundry (MosaicML); Narayanan et al. (SC'21) table 1; Korthikanti et al. (MLSys'23) table 5;
//! MegaScale (NSDI'24) table 2, both columns; Llama 3 (arXiv 2407.21783) table 4; Megatron-LM's page on scaling; the performance
//! summaries 25.09 to 26.08 of NVIDIA's Megatron-Bridge.

use std::sync::LazyLock;

use crate::embedded::{number, rows};

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

/// All stacks of dense models.
pub static STACKS: LazyLock<Vec<Stack>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../data/stacks.csv"));
    let read = rows.map(
        |[name, gpu, precision, level, num_rows, error, attention, usual]: [&'static str; 8]| Stack {
            name,
            gpu,
            precision: match precision {
                "bf16" => Precision::Bf16,
                "fp8" => Precision::Fp8,
                "mxfp8" => Precision::Mxfp8,
                _ => Precision::Nvfp4,
            },
            level: number(level),
            num_rows: number(num_rows) as u32,
            error: number(error),
            is_attention_whole: attention == "whole",
            is_usual: !usual.is_empty(),
        },
    );
    read.collect()
});
