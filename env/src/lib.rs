//! Simulates a shared GPU cluster and wraps it as a gym-like environment.

pub mod seed;
