//! The network that plays a rollout.

use pleach_network::Normaliser;

/// The network that plays a rollout, which need not be the one that learns from it (the *behaviour policy*).
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// All parameters, in [`Layout`](pleach_network::Layout)'s order.
    pub parameters: Vec<f32>,
    /// Scale of the value head.
    pub normaliser: Normaliser,
}
