//! The deployable scheduler: what it can know, what it may do, and the loop that ties the two.

pub mod cluster;
pub mod error;
pub mod estimate;
pub mod ids;
pub mod spec;
