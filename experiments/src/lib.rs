//! Compares schedulers: evaluations, trainings and sweeps, with run folders, results, statistics, tables and reports. A library
//! without a command line. Its configurations say which flag each of their fields is, and in which words, so that `pleach-cli`
//! has no second copy of them.
//!
//! What is here is the book-keeping of experiments, so that a number can be traced to the seed, configuration and version
//! that made it. Same inputs, same bytes: no artefact holds a clock reading, a host name or an absolute path.
//!
//! ```
//! use pleach_experiments::{EvaluationConfig, WorkloadSource, evaluate};
//!
//! let config = EvaluationConfig {
//!     policy: vec!["fifo".into(), "sjf".into()],
//!     workload: WorkloadSource {
//!         num_jobs: Some(50),
//!         ..WorkloadSource::of("philly-like")
//!     },
//!     seeds: 2,
//!     ..EvaluationConfig::default()
//! };
//! let results = evaluate(&config)?;
//! let names: Vec<&str> = results.policies().map(|(name, _)| name).collect();
//! assert_eq!(names, ["fifo", "sjf"]);
//! # Ok::<(), pleach_experiments::Error>(())
//! ```
//!
//! # What is deliberately not here
//! Simulation (`pleach_env`), gradients (`pleach_agents`), trees (`pleach_distill`, `pleach_scheduler`). Commands, bars, the
//! clock and environment variables (`pleach-cli`). An engine that talks to machines: a sweep is a list of independent units
//! that any batch system can run.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod calibrate;
pub mod command;
pub mod decide;
pub mod distill;
pub mod door;
pub mod error;
pub mod evaluate;
pub mod explain;
pub mod file_kind;
pub mod formula_search;
pub mod index_search;
pub mod judge;
pub mod kube_scheduler;
pub mod kueue_objects;
pub mod plot;
pub mod plugins;
pub mod progress;
pub mod promise;
pub mod regret;
pub mod removed;
pub mod report;
pub mod run_folder;
pub mod schedule;
pub mod site_policy;
mod slurm_conf;

pub mod sweep;
pub mod train;
pub mod tree_export;
pub mod tree_page;
pub mod twin;
pub mod watch;
pub mod when;
pub mod workload_report;
pub mod worlds;

pub use door::{DOOR, PolicySpec};
pub use error::Error;
pub use evaluate::evaluation::EvaluationConfig;
pub use evaluate::instances::Instance;
pub use evaluate::results::{PolicyRun, Results};
pub use evaluate::run::Runner;
pub use evaluate::sim_config::SchedulingConfig;
pub use evaluate::workload_source::WorkloadSource;
pub use plugins::Plugins;
pub use progress::{Progress, Watcher};
pub use run_folder::RunFolder;
pub use train::settings::TrainSettings;
pub use worlds::jobs::{JobsWorld, evaluate};
