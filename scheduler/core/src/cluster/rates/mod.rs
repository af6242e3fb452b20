//! What jobs make of their places: speeds, alternatives, costs of starts and checkpoints.

pub(in crate::cluster) mod alternatives;
pub(in crate::cluster) mod believe;
pub(in crate::cluster) mod checkpoints;
pub(in crate::cluster) mod copies;
pub(in crate::cluster) mod goodput_cache;
pub(in crate::cluster) mod packing;
pub(in crate::cluster) mod speed;
pub(in crate::cluster) mod type_advantage;

#[cfg(test)]
pub(in crate::cluster) mod mixed_tests;
#[cfg(test)]
mod packing_tests;
#[cfg(test)]
mod rate_tests;
