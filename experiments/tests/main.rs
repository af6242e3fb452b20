//! Experiments as a whole.

#![allow(clippy::unwrap_used)]

mod reference;
mod schedules;
mod wide_gangs;
