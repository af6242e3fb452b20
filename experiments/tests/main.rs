//! Experiments as a whole.

#![allow(clippy::unwrap_used)]

mod recorded_worlds;
mod reference;
mod schedules;
mod site_decisions;
mod wide_gangs;
