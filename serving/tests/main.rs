//! What serves, room by room, through the public surface of the crate.

#![allow(clippy::unwrap_used)]

mod blis;
mod blocks;
mod contexts;
mod environment;
mod fleet;
mod functions;
mod gateways;
mod layers;
mod pools;
mod residents;
mod steps;
mod workflows;
