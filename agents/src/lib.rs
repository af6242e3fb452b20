//! Trains scheduling policies with PPO and imitation on a set network.
//!
//! # What is deliberately not here
//! Experiment management, plots, clusters and their events: the learner knows only
//! [`VectorEnv`](pleach_env::vector::VectorEnv).

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod adam;
pub mod advantage;
mod backend;
mod backward;
pub mod blend;
pub mod checkpoint;
pub mod contract;
pub mod device;
pub mod error;
pub mod evolution;
pub mod folding;
pub mod gradients;
pub mod histogram;
pub mod imitation;
pub mod inference;
pub mod log;
mod matrix;
pub mod network;
pub mod normaliser;
#[cfg(any(test, feature = "cuda", feature = "wgpu"))]
mod padded;
pub mod parameters;
pub mod policy;
mod pooling;
pub mod ppo;
pub mod prior;
pub mod reward_rate;
pub mod rollout;
pub mod rows;
mod softmax;
mod tensorboard;
mod train_config;
pub mod trainer;
mod unit;

#[cfg(all(test, any(feature = "cuda", feature = "wgpu")))]
mod device_tests;
#[cfg(test)]
mod learning_tests;
#[cfg(test)]
mod semi_markov_tests;
#[cfg(test)]
mod toy;
