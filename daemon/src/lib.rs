#![doc = include_str!("../README.md")]

pub mod apply;
pub mod bars;
pub mod capture;
pub mod command;
pub mod config;
pub mod dealing;
pub mod detour;
pub mod drift;
pub mod error;
pub mod files;
pub mod fleet;
pub mod history;
mod journal;
pub mod log;
pub mod lua;
pub mod mark;
pub mod memory;
pub mod metrics;
pub mod output;
pub mod policy;
pub mod record;
pub mod refusals;
pub mod round;
pub mod service;
pub mod snapshot;
pub mod source;
pub mod state;
pub mod status;
pub mod watch;
pub mod why_not;

pub use config::{EstimateSettings, RoundSettings, Settings};
pub use error::Error;
pub use service::Service;
