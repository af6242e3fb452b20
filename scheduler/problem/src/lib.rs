//! What users did wrong: one type for all crates, and of known words the nearest; and how files are read and written.
//!
//! # What is deliberately not here
//! Anything that decides: the checker of schedules reads files by this, and shares nothing else with the scheduler.

pub mod files;
mod nearest;
mod problem;

pub use nearest::nearest_of;
pub use problem::{Family, Place, Problem};
