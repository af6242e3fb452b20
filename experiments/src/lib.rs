//! Compares schedulers: run folders, results, statistics, tables, reports, sweeps, and the command line of `pleach`.
//!
//! What is here is the book-keeping of experiments, so that a number can be traced to the seed, configuration and version
//! that made it. Same inputs, same bytes: no artefact holds a clock reading, a host name or an absolute path.
//!
//! # What is deliberately not here
//! Simulation (`pleach_env`), gradients (`pleach_agents`), trees (`pleach_distill`, `pleach_scheduler`). An engine that
//! talks to machines: a sweep is a list of independent units that any batch system can run.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod atomic_file;
pub mod bouts;
pub mod cli;
pub mod commands;
pub mod constraint;
pub mod contest;
pub mod contestant;
pub mod curriculum;
pub mod differences;
pub mod env_description;
pub mod error;
pub mod fine_tuning;
pub mod fitness;
pub mod folding;
pub mod hash;
pub mod imitation;
pub mod inspect;
pub mod metric;
pub mod network_card;
pub mod overrides;
pub mod progress;
pub mod pruning;
pub mod report;
pub mod reproduce;
pub mod results;
pub mod run_folder;
pub mod run_lock;
pub mod scenario;
pub mod scheduling;
pub mod settings;
pub mod settings_file;
pub mod stand_in;
pub mod stats;
pub mod suite;
pub mod sweep;
pub mod table;
pub mod tournament;
pub mod training;
pub mod training_memory;
pub mod validation;
