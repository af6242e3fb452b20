//! Holds Pleach against what others published: the rules of other simulators as presets, compared job by job with their
//! recorded runs; and published figures, run again with ours beside them.
//!
//! ```
//! use pleach_env::workload::{JobSpec, Outcome};
//! use pleach_reproduce::simulators::helios;
//! use pleach_scheduler::Time;
//! use pleach_scheduler::cluster_spec::Resources;
//!
//! let job = |id: &str, submit_s: f64, num_gpus: u32, run_time_s: f64| JobSpec {
//!     id: id.into(),
//!     submit: Time::from_secs_f64(submit_s),
//!     num_gpus,
//!     run_time_s,
//!     estimate_s: None,
//!     tenant: 0,
//!     class: 0,
//!     user: None,
//!     resources: Resources::WHOLE_GPU,
//!     outcome: Outcome::Unknown,
//! };
//! // One node of 8 GPUs: the long gang goes first, the two short ones wait for it, the shorter one starts first.
//! let jobs = [job("a", 0.0, 8, 3600.0), job("b", 1.0, 8, 600.0), job("c", 2.0, 8, 60.0)];
//! let result = helios::preset("sjf")?.simulate(1, 8, &jobs)?;
//! assert!(result.jobs[2].finish_s < result.jobs[1].finish_s);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is deliberately not here
//! A clock, progress, placement or cost model of its own: those are the simulator's (`pleach-env`), so that a match says
//! something about it. Schedulers that do more than copy a simulator: those are planners (`pleach-baselines`). Recorded runs
//! and job lists of others: they lie beside the repository and are never committed.
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests hold results to the C library's")
)]

pub mod figures;
pub mod simulators;
