//! Planners in whole simulations: every one of them on clusters far from its paper, and single ones against published rules and runs.

#![allow(clippy::unwrap_used)]

mod elastic_published;
mod parts;
mod planners;
mod rests;
#[allow(dead_code, reason = "tests of the simulator take all of it")]
#[path = "../../../env/tests/scenario/mod.rs"]
mod scenario;
mod sharing;
mod tiresias_rule;
