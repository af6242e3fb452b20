//! The deployable scheduler: what it can know, what it may do, and the loop that ties the two.
//!
//! # What is deliberately not here
//! No simulation, no gradients, no async: hidden truth is a type of the crate above, so it cannot leak into a policy.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod candidate;
pub mod cluster;
pub mod error;
pub mod estimate;
mod external_id;
pub mod features;
pub mod heuristics;
pub mod ids;
pub mod lens;
pub mod observation;
pub mod pass;
pub mod physics;
pub mod planner;
pub mod policy;
pub mod portable_math;
pub mod spec;
pub mod tree;

pub use cluster::{decision, snapshot};
