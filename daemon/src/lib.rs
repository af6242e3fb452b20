#![doc = include_str!("../README.md")]

pub mod bars;
pub mod capture;
pub mod config;
pub mod dealing;
pub mod detour;
pub mod drift;
pub mod driver;
pub mod error;
pub mod files;
pub mod fleet;
pub mod history;
mod journal;
mod learning;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod operator;
pub mod output;
pub mod policy;
pub mod record;
pub mod refusals;
pub mod replay;
pub mod round;
pub mod rounds;
pub mod slurm;
pub mod snapshot;
pub mod state;
pub mod status;
pub mod system;
pub mod wait;
pub mod watch;
pub mod why_not;

pub use config::{EstimateSettings, RoundSettings, Settings};
pub use driver::Driver;
pub use error::Error;
pub use system::BatchSystem;
