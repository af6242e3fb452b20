//! How much of a policy is carried out: the way of driving.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A way of driving a batch system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Drive {
    /// The order alone: no job is held, the batch system starts them by its own rules, in the order of their priorities.
    Order,
    /// Jobs are held, and let go one by one to nodes that are chosen for them.
    #[default]
    Hold,
}

impl Drive {
    /// Whether it leaves starting to the batch system.
    #[must_use]
    pub fn is_order(self) -> bool {
        self != Drive::Hold
    }

    /// As settings have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Drive::Order => "order",
            Drive::Hold => "hold",
        }
    }
}
