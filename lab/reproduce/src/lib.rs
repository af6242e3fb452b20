//! Published figures, run again with ours beside them.
//!
//! The tests of this crate hold the simulator to others: their rules as presets, compared job by job with their recorded runs.
//!
//! # What is deliberately not here
//! A clock, placement or cost model of its own: those are the simulator's (`pleach-env`), so that a match says
//! something about it. Schedulers that do more than copy a simulator: those are planners (`pleach-baselines`). Recorded runs
//! and job lists of others: they lie beside the repository and are never committed.
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

mod command;
pub mod figures;

pub use command::ReproduceArgs;
