#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

mod container;
mod contract;
mod decision_batch;
mod deputies;
mod error;
mod folding;
mod forward;
pub mod gradient;
pub mod graph;
mod load;
mod matrix;
mod normaliser;
mod onnx_file;
pub mod parameters;
mod policy;
mod policy_file;
mod prior;
mod scorer;
mod simd;
pub mod softmax;

#[cfg(test)]
#[path = "./tests/fixtures.rs"]
mod fixtures;

pub use container::Container;
pub use contract::{Contract, Standby};
pub use decision_batch::{DecisionBatch, DecisionRef, action_of, choice_of};
pub use error::{SEE, SETTING_MAX, refused, unfit};
pub use folding::{FeatureRanges, Watched, fold};
pub use forward::{Inference, Scratch};
pub use normaliser::Normaliser;
pub use onnx_file::FIRST_BYTE as ONNX_FIRST_BYTE;
pub use parameters::{Layout, NetworkConfig, SET};
pub use pleach_scheduler::Problem as Error;
pub use policy::LearnedPolicy;
pub use policy_file::{Provenance, TrainedNetwork};
pub use prior::{Prior, PriorPolicy};
pub use scorer::NetworkScorer;
