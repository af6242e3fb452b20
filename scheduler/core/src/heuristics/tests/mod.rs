//! What the heuristics do, worked by hand and checked against slow oracles.

mod by_hand;
mod choices;
mod in_order;
mod properties;
mod registry;
mod scenario;
mod sim;
pub(crate) mod world;
