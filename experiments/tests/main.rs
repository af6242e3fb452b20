//! Experiments as a whole.

#![allow(clippy::unwrap_used)]

mod reference;
mod wide_gangs;
