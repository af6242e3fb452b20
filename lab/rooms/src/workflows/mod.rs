//! Workflows on workers that each keep some models in GPU memory: queries that are graphs of tasks, and rules that place them by
//! views of other workers that are some time old.
//!
//! A [`System`] has models, workflows and workers; [`Queries`] come to it; [`simulate`] plays them under a [`Placer`]
//! ([`by_name`]).
//!
//! # What is deliberately not here
//! Batches of tasks, several tasks at once on one GPU, models spread over GPUs, workers that fail. Measured times: ours are
//! assumed.

mod memory;
mod outcome;
mod policy;
mod query;
mod simulate;
mod system;
mod worker;

pub use memory::Memory;
pub use outcome::{Outcome, Served};
pub use policy::{POLICIES, Placer, Ready, Seen, View, by_name};
pub use query::{QUERIES_MAX, Queries, Query, QueryGenerator};
pub use simulate::simulate;
pub use system::{Model, System, Task, Workers, Workflow};
