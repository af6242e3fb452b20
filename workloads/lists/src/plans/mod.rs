//! Large models as classes: what a training of billions of parameters needs on each GPU, how long a step takes, and so on which
//! numbers of GPUs of which types it can run and how fast.
//!
//! A [`Training`] (a [`Model`], what of it is trained, a batch) under a [`Plan`] (how it is cut over GPUs) needs [`memory`]
//! and, on a [`Machine`], takes a [`step_time`]: a roofline with one level for each software [`Stack`], and collectives that
//! the links of the cluster price. [`sizes`] is the best plan of each size that fits; a scheduler sees sizes and rates, never
//! plans.
//!
//! # How good it is
//! The levels are fitted to the calibrate half of the published rows; `pleach reproduce plans` judges the law on the other half
//! and prints both. Published rows hold good plans alone: what a bad plan costs is outside the data and
//! priced by the links.
//!
//! # Not here
//! Offloading, parts of layers that are computed anew, what a pipeline sends, latencies of single messages, memory that fewer
//! bits save: docs/gpu-model.md, Plans of large models.

mod class;
mod elastic;
mod gpu;
mod memory;
mod model;
mod plan;
mod precision;
mod search;
mod stack;
mod time;

pub use class::{Gang, class_of};
pub use elastic::elastic_of;
pub use gpu::{GPUS, Gpu};
pub use memory::{Memory, memory};
pub use model::{Experts, MODELS, Model, Trained, Training};
pub use plan::{Plan, Recompute};
pub use precision::Precision;
pub use search::{Size, best_plan, planned, sizes};
pub use stack::{ADAPTERS_OF_DENSE, Basis, EXPERTS_OF_DENSE, STACKS, Stack, level, level_of, what_of};
pub use time::{Machine, StepTime, step_time};

/// Bytes of a GB, in which vendors and papers count.
const GB: f64 = 1e9;

#[cfg(test)]
mod tests;
