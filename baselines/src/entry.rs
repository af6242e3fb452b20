//! What the registry knows of a planner: what it is, what it requires, and how it is made.

use pleach_scheduler::cluster::{Capabilities, Sharing};
use pleach_scheduler::error::ConfigError;
use pleach_scheduler::heuristics::Info;
use pleach_scheduler::planner::Planner;
use serde_json::Value;

/// What a planner requires of the cluster below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Running jobs can be stopped and go on later.
    pub preemption: bool,
    /// Two jobs can run on the same GPUs.
    pub sharing: bool,
    /// A gang can run on several GPU types.
    pub mixed_types: bool,
}

impl Requirements {
    /// Nothing.
    pub const NOTHING: Requirements = Requirements {
        preemption: false,
        sharing: false,
        mixed_types: false,
    };
    /// Preemption only.
    pub const PREEMPTION: Requirements = Requirements {
        preemption: true,
        ..Requirements::NOTHING
    };

    /// The least that has to be added to a cluster's capabilities.
    #[must_use]
    pub fn added_to(self, mut capabilities: Capabilities) -> Capabilities {
        capabilities.preemption |= self.preemption;
        capabilities.mixed_types |= self.mixed_types;
        if self.sharing && capabilities.sharing == Sharing::Off {
            capabilities.sharing = Sharing::Mps;
        }
        capabilities
    }

    /// What of it a cluster with these capabilities cannot give.
    #[must_use]
    pub fn missing_from(self, capabilities: Capabilities) -> Requirements {
        Requirements {
            preemption: self.preemption && !capabilities.preemption,
            sharing: self.sharing && capabilities.sharing == Sharing::Off,
            mixed_types: self.mixed_types && !capabilities.mixed_types,
        }
    }
}

/// A planner by name: what it is, what it asks for, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// For tables and help texts.
    pub info: Info,
    /// What the cluster must be able to do.
    pub requirements: Requirements,
    /// Its settings with the published defaults, as JSON.
    pub defaults: fn() -> Value,
    /// Makes it from its settings; `null` means the defaults.
    pub make: fn(&Value) -> Result<Box<dyn Planner>, ConfigError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_planner_requires_is_missing_until_it_is_added() {
        let all = Requirements {
            preemption: true,
            sharing: true,
            mixed_types: true,
        };
        let bare = Capabilities::DEFAULT;
        assert_eq!(all.missing_from(bare), all);
        assert_eq!(all.missing_from(all.added_to(bare)), Requirements::NOTHING);
        assert_eq!(Requirements::NOTHING.missing_from(bare), Requirements::NOTHING);
        let preemptive = Requirements::PREEMPTION.added_to(bare);
        assert!(!all.missing_from(preemptive).preemption && all.missing_from(preemptive).sharing);
    }
}
