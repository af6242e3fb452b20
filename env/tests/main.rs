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
mod elastic_published;
mod every_choice;
mod numeric_edges;
mod oracle;
mod parts;
mod physics_data;
mod planners;
mod promises;
mod properties;
mod recorded_episodes;
mod resize;
mod rests;
mod scenario;
mod segments;
mod sharing;
mod slow_simulator;
mod theory;
mod tiresias_rule;
mod walls;
