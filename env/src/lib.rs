//! Simulates a shared GPU cluster and wraps it as a gym-like environment.
//!
//! ```
//! use pleach_env::{config::EnvConfig, random::random_action, seed::Seed, vec_env::VecEnv};
//! use pleach_env::vector::{AutoresetMode, Batch, VectorEnv};
//!
//! let config = EnvConfig::registered("Pleach/Philly-v0")?;
//! let mut envs = VecEnv::new(&config, 4, AutoresetMode::SameStep)?;
//! let mut batch = Batch::new(envs.spaces(), 4);
//! let mut random = Seed(0).stream("example", 0);
//! envs.reset(&[1, 2, 3, 4], &mut batch)?;
//! for _ in 0..1000 {
//!     let masks = batch.mask.chunks(envs.spaces().num_candidates);
//!     let actions: Vec<usize> = masks.map(|mask| random_action(mask, &mut random)).collect();
//!     envs.step(&actions, &mut batch)?; // batch.reward, batch.terminated, batch.truncated, ...
//! }
//! # Ok::<(), pleach_env::error::Error>(())
//! ```
//!
//! # What is deliberately not here
//! No learning and no plots; hidden truth stays in [`world`], and a scheduler sees only its
//! [`Cluster`](pleach_scheduler::cluster::Cluster).

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod attribution;
pub mod bound;
pub mod capacity;
pub mod check;
pub mod config;
pub mod env;
pub mod error;
pub mod failures;
pub mod metrics;
mod normal;
pub mod occupancy;
pub mod random;
mod registered;
pub mod reward;
pub mod seed;
pub mod simulate;
pub mod teach;
pub mod vec_env;
pub mod vector;
pub mod workload;
pub mod world;
