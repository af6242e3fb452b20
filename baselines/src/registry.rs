//! Published cluster schedulers that plan a whole instant or a whole round: baselines, teachers, and fallbacks of a daemon.
//!
//! One folder for each line of work, one file for each system; a file cites the paper, lists where we deviate, and keeps
//! its constants in a configuration with the published defaults. Systems that only choose among candidates are policies
//! and live in [`crate::heuristics`].
//!
//! What the planners share: [`give_out`] deals GPUs along a priority order, [`board`] is a scratch copy of the cluster on
//! which a plan is drawn up, [`layout`] carries a plan out, [`timer`] keeps rounds, [`program`] solves linear and integer
//! programmes.
//!
//! # What is deliberately not here
//! Simulation: a planner knows what a scheduler knows. Known bugs of released code: they are reproduced, where a
//! comparison needs them, by the presets of the crate above.

pub mod board;
pub mod give_out;
pub mod layout;
pub mod program;
mod settings;
pub mod timer;

pub mod allox;
mod answer;
pub mod elastic;
pub mod gavel;
pub mod hadar;
pub mod packing;
pub mod prediction;
pub mod production;
pub mod service;
pub mod sharing;
pub mod synergy;

#[cfg(test)]
pub(crate) mod tests;

use serde_json::Value;

use crate::cluster::{Capabilities, Sharing};
use crate::error::ConfigError;
use crate::heuristics::Info;
use crate::planner::Planner;

/// What a planner asks of the cluster below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// Running jobs can be stopped and go on later.
    pub preemption: bool,
    /// Two jobs can run on the same GPUs.
    pub sharing: bool,
    /// A gang can run on several GPU types.
    pub mixed_types: bool,
}

impl Asks {
    /// Nothing.
    pub const NOTHING: Asks = Asks {
        preemption: false,
        sharing: false,
        mixed_types: false,
    };
    /// Preemption only.
    pub const PREEMPTION: Asks = Asks {
        preemption: true,
        ..Asks::NOTHING
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

    /// What a cluster with these capabilities cannot give, as the flags of the command line.
    #[must_use]
    pub fn missing_from(self, capabilities: Capabilities) -> Vec<&'static str> {
        let checks = [
            (self.preemption && !capabilities.preemption, "--preemption"),
            (
                self.sharing && capabilities.sharing == Sharing::Off,
                "--sharing mps",
            ),
            (self.mixed_types && !capabilities.mixed_types, "--mixed-types"),
        ];
        let missing = checks.iter().filter(|(missing, _)| *missing);
        missing.map(|(_, flag)| *flag).collect()
    }
}

/// A planner by name: what it is, what it asks for, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// For tables and help texts.
    pub info: Info,
    /// What the cluster must be able to do.
    pub asks: Asks,
    /// Its settings with the published defaults, as JSON.
    pub defaults: fn() -> Value,
    /// Makes it from its settings; `null` means the defaults.
    pub make: fn(&Value) -> Result<Box<dyn Planner>, ConfigError>,
}

/// The lines of work, in the order in which tables list them.
const FAMILIES: [&[Entry]; 10] = [
    production::ENTRIES,
    service::ENTRIES,
    synergy::ENTRIES,
    gavel::ENTRIES,
    allox::ENTRIES,
    hadar::ENTRIES,
    elastic::ENTRIES,
    sharing::ENTRIES,
    packing::ENTRIES,
    prediction::ENTRIES,
];

/// All planners, in the order in which tables list them.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.into_iter().flatten()
}

/// The names of all planners.
pub fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|entry| entry.info.name)
}

/// The planner of a name, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.info.name == name)
}

/// Makes a planner from its settings; `null` means the published defaults.
///
/// # Errors
/// An unknown name, an unknown key, or a value out of its range.
pub fn make(name: &str, settings: &Value) -> Result<Box<dyn Planner>, ConfigError> {
    match find(name) {
        Some(entry) => (entry.make)(settings),
        None => Err(ConfigError {
            key: "policy".into(),
            value: name.into(),
            allowed: format!("one of {}", names().collect::<Vec<_>>().join(", ")),
            hint: "pleach policies lists them".into(),
        }),
    }
}
