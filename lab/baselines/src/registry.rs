//! All planners by name.

use pleach_scheduler::{ConfigError, Planner};
use serde_json::Value;

use crate::{allox, elastic, gavel, hadar, packing, prediction, production, service, sharing, synergy};
use pleach_dealing::Entry;

/// The lines of work, in the order in which tables list them.
pub const FAMILIES: &[&[Entry]] = &[
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
    FAMILIES.iter().copied().flatten()
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
        None => Err(ConfigError::new(
            "policy",
            name,
            format!("one of {}", names().collect::<Vec<_>>().join(", ")),
            "pleach policies lists them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_no_planner_has_the_name_of_a_heuristic() {
        let mut all: Vec<&str> = names()
            .chain(pleach_scheduler::heuristics::names().iter().copied())
            .collect();
        let num = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), num);
    }

    #[test]
    fn every_planner_is_made_from_its_own_defaults_and_refuses_unknown_keys() {
        for entry in entries() {
            let name = entry.info.name;
            let planner = (entry.make)(&(entry.defaults)()).unwrap();
            assert_eq!(planner.name(), name);
            assert_eq!(make(name, &Value::Null).unwrap().name(), name);
            let unknown = serde_json::json!({ "no_such_key": 1 });
            let error = make(name, &unknown).err().unwrap().to_string();
            assert!(
                error.contains("no_such_key") && error.contains(name),
                "{name}: {error}"
            );
        }
    }
}
