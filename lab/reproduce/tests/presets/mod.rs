//! The rules of published simulators, so that our results can be held against theirs job by job.
//!
//! A [`Preset`] is a planner that decides as the other simulator does, ties and quirks included, and the settings under
//! which [`pleach_env::world::World`] counts time as it does. Clock, progress, gangs, placement and the cost of preemption are
//! ours; only the decisions and the quirks are theirs. What the presets reproduce, and how well, is in
//! `lab/notes/validation.md`; `other_simulators` and `round_simulators` beside this folder hold them to it.
//!
//! The other simulators run each virtual cluster as a cluster of its own, with its own nodes: simulate one workload per
//! virtual cluster.
//!
//! Simulators that work in rounds (Gavel, Synergy, Blox) have a clock of their own: see [`in_rounds`].
//!
//! # What is deliberately not here
//! Sharing a GPU as Lucid does, and predicted run times (QSSF of Helios and Lucid: the predictions were not published).

pub mod blox;
mod every;
pub mod gavel;
pub mod helios;
pub mod in_rounds;
pub mod lucid;
mod preset;
mod python_random;
mod quota;
pub mod synergy;
mod test_workloads;
pub mod tiresias;

pub use preset::Preset;
