//! Trains scheduling policies with PPO, evolution strategies, imitation and exact credit by forks on the set network of `pleach_network`.
//!
//! ```
//! use pleach_agents::{TrainConfig, Trainer};
//! use pleach_env::{AutoresetMode, EnvConfig, Seed, VecEnv};
//! use pleach_network::Contract;
//!
//! let env = EnvConfig::registered("Pleach/Philly-v0")?;
//! let mut envs = VecEnv::new(&env, 2, AutoresetMode::SameStep)?;
//! let contract = Contract::current(env.spaces(), env.candidates, "an example");
//! let config = TrainConfig { num_steps: 16, ..TrainConfig::default() };
//! let mut trainer = Trainer::new(config, contract, Seed(1))?;
//! trainer.update(&mut envs)?;
//! assert_eq!(trainer.num_updates(), 1);
//! // What deploys it, and what resumes it.
//! let (network, checkpoint) = (trainer.network(), trainer.checkpoint());
//! assert_eq!(network.parameters, checkpoint.parameters);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is deliberately not here
//! Experiment management, plots, clusters and their events: the learner knows only
//! [`VectorEnv`](pleach_env::VectorEnv). Running a trained network: that is `pleach_network`, which needs none of this.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

mod adam;
pub mod advantage;
mod checkpoint;
mod counterfactual;
mod device;
mod drawn;
mod error;
pub mod evolution;
pub mod gradients;
mod histogram;
mod imitation;
pub mod learner;
mod learner_name;
mod log;
pub mod networks;
pub mod ppo;
mod probe;
mod random;
mod rollout;
mod tensorboard;
mod train_config;
mod trainer;

pub use adam::Adam;
pub use checkpoint::Checkpoint;
pub use counterfactual::CounterfactualConfig;
pub use device::Device;
pub use drawn::Drawn;
pub use error::Error;
pub use histogram::Histogram;
pub use imitation::{Demonstrations, ImitationConfig, ImitationStats};
pub use learner_name::Learner;
pub use log::Logger;
pub use random::initial_parameters;
pub use rollout::Rollout;
pub use train_config::TrainConfig;
pub use trainer::{Trainer, UpdateStats};

#[cfg(all(test, any(feature = "cuda", feature = "wgpu")))]
mod device_tests;
#[cfg(test)]
mod learning_tests;
#[cfg(debug_assertions)]
#[cfg(test)]
mod lease_tests;
#[cfg(test)]
mod semi_markov_tests;
#[cfg(test)]
#[path = "./tests/test_networks.rs"]
mod test_networks;
#[cfg(test)]
#[path = "./tests/toy.rs"]
mod toy;
