//! Serving: requests with deadlines, and what shares GPUs among them. Each kind of work has a room of its own:
//!
//! - [`contexts`]: one GPU that contexts with caps of SMs share, under periodic tasks with deadlines;
//! - [`functions`]: requests of applications, graphs of functions with one target, batched on slices of GPUs, and dispatchers;
//! - [`layers`]: networks that share accelerators layer by layer;
//! - [`llm`]: replicas of large language models under continuous batching, and the routers in front;
//! - [`workflows`]: graphs of tasks on workers that keep some models in GPU memory.
//!
//! # What is deliberately not here
//! Jobs and clusters: an instance is an ordinary job to them, a batch is none. Learning: that is `pleach-experiments`.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

mod columns;
pub mod contexts;
mod environment;
pub mod functions;
pub mod layers;
pub mod llm;
mod quantile;
mod scoring;
mod settings;
pub mod workflows;

pub use environment::{Environment, Reward, Step, Tally};
