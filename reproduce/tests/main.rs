//! Our simulator against recorded runs of others, job by job.

#![allow(clippy::unwrap_used)]

mod other_simulators;
mod round_simulators;
