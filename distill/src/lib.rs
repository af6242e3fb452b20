//! From a teacher to a tree: any [`Policy`](pleach_scheduler::policy::Policy) becomes one decision tree that a person can
//! read and a daemon can run.
//!
//! The teacher schedules a few episodes, and its scores are recorded at every decision point ([`Recording`], [`Dataset`]). A
//! regression tree is fitted on them ([`cart`]). The tree schedules, and the teacher corrects (DAgger, [`distill`]). The smallest tree
//! that *performs* well in simulation is kept and pruned ([`PruneConfig`]). Alternatively a [`search`] changes trees a little and
//! judges them in the simulator, again and again.
//! `docs/distilling.md` has the recipe and its sources.
//!
//! ```no_run
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]
#![doc = include_str!("../examples/distil.rs")]
//! ```
//!
//! # What is deliberately not here
//! No networks and no simulator: the teacher is a policy, and the caller runs the episodes and judges the trees. No
//! ensembles and no oblique splits: what cannot be read is not a result of this crate.

pub mod cart;
mod config;
mod dagger;
mod dataset;
mod error;
mod fidelity;
mod prune;
mod report;
pub mod search;
mod target;
#[cfg(test)]
#[path = "./tests/test_trees.rs"]
mod test_trees;
mod without_leaf;

pub use config::{DistillConfig, Monotone, PruneConfig};
pub use dagger::{Distilled, Episode, Label, Recording, distill, fitted};
pub use dataset::{Dataset, Point};
pub use error::Error;
pub use fidelity::Fidelity;
pub use report::{Report, StudentReport};
pub use target::{Centre, TargetConfig, Targets};
pub use without_leaf::without_leaf;
