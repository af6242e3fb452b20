//! The rules of published simulators, so that our results can be held against theirs job by job.
//!
//! Clock, progress, gangs and GPUs are ours; only the decisions and the quirks are theirs. What is reproduced, and how
//! well, is in `docs/validation.md`.

pub mod blox;
pub mod gavel;
pub mod in_rounds;
mod python_random;
pub mod synergy;
