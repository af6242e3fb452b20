//! Serving: requests with deadlines, and what shares GPUs among them. Each kind of work has a room of its own:
//!
//! - [`functions`]: requests of applications, graphs of functions with one target, batched on slices of GPUs, and dispatchers;
//! - [`llm`]: replicas of large language models under continuous batching, and the routers in front.
//!
//! What rooms share is public, for a crate with rooms of its own: [`settings`] of policies by name, [`columns`], [`scoring`] of rows,
//! [`quantile`] and [`environment`].
//!
//! # What is deliberately not here
//! Jobs and clusters: an instance is an ordinary job to them, a batch is none. Learning: that is `pleach-experiments`.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod columns;
pub mod environment;
pub mod functions;
pub mod llm;
pub mod quantile;
pub mod scoring;
pub mod settings;

pub use environment::{Environment, Reward, Step, Tally};
