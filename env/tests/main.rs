//! The simulator as a whole, held to oracles, theory, published rules and its own promises.
//!
//! `allocations.rs` is a program of its own: it counts what the allocator of a whole program is asked for.

#![allow(clippy::unwrap_used)]

mod attribution;
mod batch_system;
mod bounds;
mod brute_force;
mod changed_envs;
mod easy;
mod easy_given;
mod every_choice;
mod kubernetes;
mod kueue;
mod labelled;
mod numeric_edges;
mod oracle;
mod physics_data;
mod promises;
mod properties;
mod recorded_episodes;
mod resize;
mod scenario;
mod segments;
mod site_policies;
mod slow_simulator;
mod slurm;
mod theory;
mod walls;
