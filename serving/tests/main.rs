//! What serves, room by room, through the public surface of the crate.

#![allow(clippy::unwrap_used)]

mod environment;
mod fleet;
mod layers;
