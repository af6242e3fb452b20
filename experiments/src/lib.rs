//! Compares schedulers: run folders, results, statistics, tables, reports, sweeps. A library without
//! a command line: `pleach-cli` turns flags into what is here.
//!
//! What is here is the book-keeping of experiments, so that a number can be traced to the seed, configuration and version
//! that made it. Same inputs, same bytes: no artefact holds a clock reading, a host name or an absolute path.
//!
//! # What is deliberately not here
//! Simulation (`pleach_env`), gradients (`pleach_agents`), trees (`pleach_distill`, `pleach_scheduler`). An engine that
//! talks to machines: a sweep is a list of independent units that any batch system can run.

pub mod distill;
pub mod error;
pub mod evaluate;
pub mod plot;
pub mod progress;
pub mod report;
pub mod reproduce;
pub mod run_folder;
pub mod suite;
pub mod sweep;
pub mod tournament;
pub mod train;
pub mod workload_report;

pub use evaluate::evaluation::{Evaluation, EvaluationConfig, evaluate};
