//! The deployable scheduler: what it can know, what it may do, and the loop that ties the two.

pub mod error;
pub mod ids;
pub mod spec;
