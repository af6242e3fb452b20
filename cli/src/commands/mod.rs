//! The commands: each turns its flags into calls of the library and prints what a person wants to see.

pub mod calibrate;
pub mod cluster;
pub mod describe;
pub mod distill;
pub mod emit;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod import;
pub mod index;
pub mod manual;
pub mod policies;
pub mod quickstart;
pub mod report;
pub mod run;
pub mod say;
pub mod sweep;
pub mod sweep_unit;
pub mod train;
pub mod twin;
pub mod verify;
pub mod watch;
pub mod when;
mod when_served;
pub mod workload;
mod world;

pub use pleach_experiments::command::Context;
