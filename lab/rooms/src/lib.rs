//! Rooms that serve only published figures:
//!
//! - [`contexts`]: one GPU that contexts with caps of SMs share, under periodic tasks with deadlines;
//! - [`layers`]: networks that share accelerators layer by layer;
//! - [`workflows`]: graphs of tasks on workers that keep some models in GPU memory.
//!
//! # What is deliberately not here
//! What a site serves with: requests to models, applications of functions (`pleach-serving`).

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod contexts;
pub mod layers;
mod registered;
pub mod workflows;

pub use registered::ROOM;
