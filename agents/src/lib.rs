//! Trains scheduling policies with PPO, evolution strategies and imitation on the set network of `pleach_network`.
//!
//! # What is deliberately not here
//! Experiment management, plots, clusters and their events: the learner knows only
//! [`VectorEnv`](pleach_env::vector::VectorEnv). Running a trained network: that is `pleach_network`, which needs none of this.

pub mod adam;
pub mod advantage;
pub mod behaviour;
pub mod checkpoint;
pub mod device;
pub mod error;
pub mod evolution;
pub mod gradients;
pub mod histogram;
pub mod imitation;
pub mod log;
#[cfg(any(test, feature = "cuda", feature = "wgpu"))]
mod padded;
pub mod ppo;
mod probe;
pub mod random;
pub mod reward_rate;
pub mod rollout;
mod tensorboard;
pub mod train_config;
pub mod trainer;

#[cfg(all(test, any(feature = "cuda", feature = "wgpu")))]
mod device_tests;
#[cfg(test)]
mod learning_tests;
#[cfg(test)]
mod semi_markov_tests;
#[cfg(test)]
mod test_networks;
#[cfg(test)]
mod toy;
