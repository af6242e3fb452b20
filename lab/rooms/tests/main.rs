//! Rooms of published figures, through the public surface of the crate.

#![allow(clippy::unwrap_used)]

mod contexts;
mod layers;
mod residents;
mod steps;
mod workflows;
