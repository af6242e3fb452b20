//! Experiments as a whole.

#![allow(clippy::unwrap_used)]

mod forecasts;
mod hidden_priority;
mod kubernetes_runs;
mod kubernetes_sites;
mod kueue_sites;
mod recorded_sites;
mod recorded_worlds;
mod regret;
mod schedules;
mod site_decisions;
mod slurm_sites;
mod waits_as_column;
mod wide_gangs;
