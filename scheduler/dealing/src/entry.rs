//! What is known of a planner by its name: what it is, what it requires, and how it is made; and the dealers so.

use pleach_scheduler::heuristics::Info;
use pleach_scheduler::{ActionKind, ActionSet, Planner, Problem};
use serde_json::Value;

use crate::{NAMES, defaults, make};

/// What a planner requires that only stops running jobs.
pub const PREEMPTION: ActionSet = ActionSet::of(ActionKind::Preempt);
/// What a planner requires that only puts two jobs on the same GPUs.
pub const SHARING: ActionSet = ActionSet::of(ActionKind::Share);

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
    pub make: fn(&Value) -> Result<Box<dyn Planner>, Problem>,
}

impl Entry {
    /// What of its requirements it makes use of where the cluster can do it, and does without elsewhere: a dealer packs no jobs
    /// where GPUs are not shared, and only fills free GPUs where no job may be stopped.
    #[must_use]
    pub fn does_without(&self) -> ActionSet {
        if NAMES.contains(&self.info.name) {
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

/// What a deal makes use of in a cluster.
pub const DEALS: ActionSet = PREEMPTION.union(SHARING);

/// A planner that deals, by its name.
macro_rules! dealt {
    ($name:literal, $citation:literal, $knows:literal, $decides:literal) => {
        Entry {
            info: Info {
                name: $name,
                family: "dealing, preemptive, sharing",
                citation: $citation,
                knows: $knows,
                decides: $decides,
            },
            requirements: DEALS,
            defaults: || defaults($name),
            make: |value| make($name, value),
        }
    };
}

/// The dealers, in the order in which tables list them.
pub const ENTRIES: &[Entry] = &[
    dealt!(
        "las-deal",
        "least attained service (Tiresias NSDI'19), dealt",
        "attained service, gang size, speed on each GPU type and beside each other job",
        "deals GPUs, sizes and cores to the least served jobs, seats gangs tightly, packs the others where that pays"
    ),
    dealt!(
        "srtf-deal",
        "shortest remaining time first, dealt",
        "run time estimate, gang size, speed on each GPU type and beside each other job",
        "as las-deal, the shortest rest first"
    ),
    dealt!(
        "gittins-deal",
        "Gittins index (Tiresias NSDI'19), dealt",
        "attained service, that of ended jobs, gang size, speed on each GPU type and beside each other job",
        "as las-deal, the job most likely to end soon for what it costs first"
    ),
    dealt!(
        "belief-deal",
        "Gittins index with guessed run times (Aalto et al., 2009), dealt",
        "run time estimate and what those of ended jobs were worth, gang size, speed on each GPU type and beside each other job",
        "as las-deal, first the job that is believed to cost least until it ends"
    ),
    dealt!(
        "rate-deal",
        "greedy by rate per GPU, dealt",
        "gang size, speed on each GPU type and beside each other job",
        "as las-deal, the gang whose GPUs each do most first"
    ),
    dealt!(
        "index",
        "a learned linear index, dealt",
        "attained service, age, load, gang size, speed on each GPU type and beside each other job",
        "as las-deal, by a formula of weighted logarithms that evolution found"
    ),
];
