//! Jobs that are graphs of stages: executors that are shared run the tasks of stages in waves, and a policy chooses which stage gets
//! how many of them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pleach_graphs::generate::{Arrivals, Shape, graphs, list};
//! use pleach_graphs::list::Machine;
//! use pleach_graphs::rules::{by_name, play};
//! use pleach_workloads::Seed;
//!
//! let drawn = Arc::new(graphs(Shape::Tpch, 20, Seed(1))?);
//! let list = Arc::new(list(&drawn, Machine::default(), Arrivals::Batch { jobs: 10 }, Seed(2))?);
//! let mut rule = by_name("srpt-cap:cap=2", &list, 0)?;
//! let outcome = play(Arc::clone(&list), rule.as_mut())?;
//! assert!(outcome.jcts_s().count() == 10 && outcome.mean_jct_s() > 2.0);
//! # Ok::<(), pleach_scheduler::Problem>(())
//! ```
//!
//! # What is deliberately not here
//! GPUs, gangs and preemption: those are `pleach-env`. Stages that are placed on machines with several resources. Spark itself.

pub mod board;
pub mod columns;
pub mod engine;
pub mod environment;
mod event_log;
pub mod file;
pub mod generate;
pub mod graph;
pub mod list;
pub mod network;
pub mod rules;
mod world;

pub use world::{GraphSettings, GraphWorld, KIND, ROOM, Source};
