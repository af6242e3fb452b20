//! Levels: which part of a GPU's peak published software gets of a wide model without traffic.
//!
//! One level for each (software, GPU, bits, what is trained); everything else of [`super::time`] is the same for all.
//! `data/stacks.csv` says by what it is written, from the calibrate half of the published rows. Where no row
//! covers a type, [`level`] says from what it is carried over.

use std::fmt::{self, Display, Formatter};
use std::sync::LazyLock;

use super::gpu::Gpu;
use super::model::{Trained, Training};
use crate::embedded::{number, rows};

/// A software on a GPU type.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The software; `any` for models with experts.
    pub software: String,
    /// The GPU type.
    pub gpu: String,
    /// Bits of a number.
    pub bits: u32,
    /// What is trained: `dense`, `adapters`, or a model with experts.
    pub what: String,
    /// Part of the peak, (0, 1].
    pub level: f64,
    /// Published rows of the calibrate half.
    pub num_rows: usize,
}

/// All stacks with a published row.
pub static STACKS: LazyLock<Vec<Stack>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../data/stacks.csv"));
    let read = rows.map(
        |[software, gpu, bits, what, level, num_rows]: [&'static str; 6]| Stack {
            software: software.into(),
            gpu: gpu.into(),
            bits: number(bits) as u32,
            what: what.into(),
            level: number(level),
            num_rows: number(num_rows) as usize,
        },
    );
    read.collect()
});

/// What is trained, as stacks call it.
#[must_use]
pub fn what_of(training: &Training) -> &'static str {
    match (training.model.experts, training.trained) {
        (Some(_), _) => training.model.name,
        (None, Trained::All) => "dense",
        (None, Trained::Adapters) => "adapters",
    }
}

/// From what a level comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Rows of the type, the bits and what is trained.
    Measured,
    /// Rows of other models with experts.
    OtherModels,
    /// Rows of dense models, times what adapters or experts get of their level elsewhere.
    Dense,
    /// Rows of the type in other bits.
    OtherBits,
    /// No row of the type.
    Assumed,
}

impl Display for Basis {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        out.write_str(match self {
            Basis::Measured => "measured",
            Basis::OtherModels => "from other models with experts",
            Basis::Dense => "from dense models",
            Basis::OtherBits => "from other bits",
            Basis::Assumed => "assumed",
        })
    }
}

/// Level of a type of which no row is published. *Assumed*.
pub const LEVEL_ASSUMED: f64 = 0.5;
/// Levels of adapters over those of dense models: the median over the types and bits that have rows of both.
pub const ADAPTERS_OF_DENSE: f64 = 0.85;
/// The same of models with experts.
pub const EXPERTS_OF_DENSE: f64 = 0.57;

/// The level of a training on a type where no software is named: the median over the software with a row of it.
#[must_use]
pub fn level(gpu: &Gpu, training: &Training) -> (f64, Basis) {
    level_of(&STACKS, gpu.measured_as(), training)
}

/// The same of other stacks.
#[must_use]
pub fn level_of(stacks: &[Stack], gpu: &str, training: &Training) -> (f64, Basis) {
    let (bits, what) = (training.precision.bits(), what_of(training));
    let of = |is: &dyn Fn(&Stack) -> bool| {
        let found = stacks.iter().filter(|stack| stack.gpu == gpu && is(stack));
        median(found.map(|stack| stack.level).collect())
    };
    let is_dense = |stack: &Stack| stack.what == "dense";
    let has_experts = |stack: &Stack| !is_dense(stack) && stack.what != "adapters";
    let part = match (training.model.experts, training.trained) {
        (Some(_), _) => EXPERTS_OF_DENSE,
        (None, Trained::Adapters) => ADAPTERS_OF_DENSE,
        (None, Trained::All) => 1.0,
    };
    let of_dense = |level: Option<f64>| level.map(|level| part * level);
    let in_bits = |stack: &Stack| stack.bits == bits;
    // 8 bits are next to 16 and to 4.
    let nearest = |is: &dyn Fn(&Stack) -> bool| {
        let mut others = [8, 16, 4].into_iter().filter(|other| *other != bits);
        others.find_map(|other| of(&|stack| stack.bits == other && is(stack)))
    };
    let found = [
        (of(&|stack| in_bits(stack) && stack.what == what), Basis::Measured),
        (
            of(&|stack| training.model.experts.is_some() && in_bits(stack) && has_experts(stack)),
            Basis::OtherModels,
        ),
        (
            of_dense(of(&|stack| in_bits(stack) && is_dense(stack))),
            Basis::Dense,
        ),
        (nearest(&|stack| stack.what == what), Basis::OtherBits),
        (of_dense(nearest(&is_dense)), Basis::OtherBits),
    ];
    let found = found.into_iter().find_map(|(level, basis)| Some((level?, basis)));
    found.unwrap_or((part * LEVEL_ASSUMED, Basis::Assumed))
}

/// The middle of some numbers.
fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    let (low, high) = (of.get(of.len().wrapping_sub(1) / 2)?, of.get(of.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}
