//! Simulates a shared GPU cluster and wraps it as a gym-like environment.

pub mod error;
pub mod metrics;
pub mod seed;
pub mod vector;
pub mod workload;
