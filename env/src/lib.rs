//! Simulates a shared GPU cluster and wraps it as a gym-like environment.
//!
//! # What is deliberately not here
//! No learning and no plots; hidden truth stays in [`world`], and a scheduler sees only its
//! [`Cluster`](pleach_scheduler::cluster::Cluster).

pub mod check;
pub mod config;
pub mod env;
pub mod error;
pub mod metrics;
pub mod random;
pub mod reward;
pub mod seed;
pub mod simulate;
pub mod vec_env;
pub mod vector;
pub mod workload;
pub mod world;
