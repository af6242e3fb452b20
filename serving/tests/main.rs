//! What serves, room by room, through the public surface of the crate.

#![allow(clippy::unwrap_used)]

mod blis;
mod blocks;
mod environment;
mod fleet;
mod functions;
mod gateways;
mod pools;
mod steps;
