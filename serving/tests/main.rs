//! What serves, room by room, through the public surface of the crate.

#![allow(clippy::unwrap_used)]

mod blis;
mod contexts;
mod environment;
mod fleet;
mod functions;
mod gateways;
mod layers;
mod residents;
mod workflows;
