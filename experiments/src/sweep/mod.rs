//! Sweeps: one manifest of independent units, results that exist whole or not at all, and any engine to run them.
//!
//! ```text
//! plan    grid.toml            -> sweep.json           what there is to do: one entry per unit
//! unit K  sweep.json, K        -> units/K/result.json   one unit; exit code 0 done, 75 try again, 2 bad configuration
//! run     sweep.json           -> all missing units, on the threads of this machine
//! status  sweep.json, units/   -> done, failed, missing; the missing ones as an array index list
//! gather  sweep.json, units/   -> results.csv, results.json, results.html, leaderboard.csv; a store for MLflow
//! emit    sweep.json           -> a script for Slurm, a Job for Kubernetes or a driver for Ray that runs the units
//! ```
//! The contract is what makes this work unchanged under a Slurm job array, a Kubernetes indexed job, GNU parallel or a
//! laptop: units share nothing, a unit is a function of its configuration and seed, a result carries the hash of both, and
//! a unit whose result is there with the right hash is skipped. So killing anything at any time and starting it again is
//! always right. A training may begin where that of the rung below has ended, for no bit of its result depends on it.
//!
//! # What is deliberately not here
//! An engine: nothing here talks to other machines; `emit` writes files that others run. Knowledge of what a unit does: it is a function given by the caller.

pub(crate) mod collect;
mod draw;
pub mod emit;
pub mod engine;
mod figures;
pub mod gather;
pub mod grid;
pub mod halving;
pub mod index_list;
pub mod judge;
mod leaderboard;
pub mod manifest;
mod mlflow;
pub mod page;
pub mod policy_unit;
pub mod rungs;
mod scalars;
mod settings;
pub mod status;
mod tpe;
pub mod unit;
pub mod unit_error;

pub use manifest::{Manifest, UnitSpec};
pub use unit::Work;
pub use unit_error::UnitError;
