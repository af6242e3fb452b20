//! Fleets of replicas behind gateways, through the public surface of the crate.

#![allow(clippy::unwrap_used)]

mod environment;
mod fleet;
