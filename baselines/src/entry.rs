//! What the registry knows of a planner: what it is, what it requires, and how it is made.

use pleach_scheduler::heuristics::Info;
use pleach_scheduler::{ActionKind, ActionSet, ConfigError, Planner};
use serde_json::Value;

/// What a planner requires that only stops running jobs.
pub(crate) const PREEMPTION: ActionSet = ActionSet::of(ActionKind::Preempt);
/// What a planner requires that only puts two jobs on the same GPUs.
pub(crate) const SHARING: ActionSet = ActionSet::of(ActionKind::Share);

/// A planner by name: what it is, what it asks for, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// For tables and help texts.
    pub info: Info,
    /// What the cluster must be able to do, but for [`Entry::does_without`].
    pub requirements: ActionSet,
    /// Its settings with the published defaults, as JSON.
    pub defaults: fn() -> Value,
    /// Makes it from its settings; `null` means the defaults.
    pub make: fn(&Value) -> Result<Box<dyn Planner>, ConfigError>,
}

impl Entry {
    /// What of its requirements it makes use of where the cluster can do it, and does without elsewhere: a dealer packs nobody where
    /// GPUs are not shared, and fills free GPUs where nobody may be stopped.
    #[must_use]
    pub fn does_without(&self) -> ActionSet {
        if pleach_dealing::NAMES.contains(&self.info.name) {
            return PREEMPTION.union(SHARING);
        }
        ActionSet::NONE
    }

    /// Whether its jobs train as several copies at once whose steps add up (HadarE). A lower bound of a workload takes a job to
    /// run once at a time, and such a planner can be below it.
    #[must_use]
    pub fn copies_jobs(&self) -> bool {
        self.info.name == "hadare"
    }
}
