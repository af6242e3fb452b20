//! The rules of published simulators as presets, held to recorded runs of those simulators job by job, and to what they did before.
//!
//! Recorded runs are read from `shared/data` beside the repository; where they are missing the tests are noted as skipped.

#![allow(clippy::unwrap_used)]

mod goldens;
mod other_simulators;
mod presets;
mod round_simulators;
