//! Simulates a shared GPU cluster and wraps it as a gym-like environment.
//!
//! ```
//! use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, VecEnv, VectorEnv, random_action};
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
//! # Ok::<(), pleach_env::Error>(())
//! ```
//!
//! Without an environment, a [`Workload`] and a policy are simulated to the end:
//!
//! ```
//! use pleach_env::{GeneratorConfig, Seed, SimConfig, generate, simulate};
//!
//! let workload = generate(&GeneratorConfig::default().with(200, 0.9), Seed(1))?;
//! let mut policy = pleach_scheduler::heuristics::by_name("sjf")?;
//! let metrics = simulate(&workload, &SimConfig::default(), &mut policy)?.metrics;
//! assert!(metrics.avg_jct_s > 0.0 && metrics.makespan_s > metrics.avg_jct_s);
//! # Ok::<(), pleach_env::Error>(())
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
pub mod availability;
pub mod batch_system;
pub mod beliefs;
pub mod bound;
mod check;
#[cfg(debug_assertions)]
#[cfg(test)]
mod columns_tests;
mod config;
mod env;
mod episode;
mod error;
pub mod expert;
pub mod failures;
mod metrics;
pub mod mixed;
pub mod occupancy;
mod random;
mod realism;
mod registered;
mod reward;
mod segments;
mod simulate;
pub mod site_failures;
mod split;
#[cfg(test)]
#[path = "./tests/test_lists.rs"]
mod test_lists;
mod vec_env;
mod vector;
mod views;
pub mod world;

pub use check::{CheckReport, check_env};
pub use config::{EnvConfig, Source, WorkloadConfig};
pub use env::Env;
pub use episode::{Episode, Reached};
pub use error::{Error, StepError};
pub use metrics::{JobOutcome, Metrics};
pub use pleach_tables::schedule;
pub use pleach_workloads as workload;
pub use pleach_workloads::{GeneratorConfig, JobSpec, Seed, Workload, generate};
pub use random::{RandomActions, random_action};
pub use reward::{Expression, OwnReward, RewardConfig, RewardWeights, register_rewards, reward_markdown};
pub use simulate::{
    SimConfig, SimResult, Simulation, labels, simulate, simulate_planner, simulate_planner_within,
};
pub use split::Split;
pub use vec_env::VecEnv;
pub use vector::{AutoresetMode, Batch, BatchMut, ObservationMut, Spaces, Step, VectorEnv};
pub use views::candidate_rows;
