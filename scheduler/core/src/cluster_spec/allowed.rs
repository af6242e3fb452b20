//! The nodes that a job may have, where a site's rules leave it only some.

use serde::{Deserialize, Serialize};

/// Number of a set of nodes in its cluster ([`crate::Cluster::allow`]); 0: all nodes.
///
/// Rules of batch systems come to this: features, nodes that a user names or shuns, reservations to come, nodes that refused a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AllowedNodes(pub u16);

impl AllowedNodes {
    /// Every node.
    pub const ALL: AllowedNodes = AllowedNodes(0);

    /// Whether it is every node.
    #[must_use]
    #[inline]
    pub fn is_all(&self) -> bool {
        *self == AllowedNodes::ALL
    }
}
