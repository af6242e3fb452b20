//! The planners that deal, by name: `pleach-dealing` in the registry.

pub use pleach_dealing::{
    DealingConfig, DealingRules, Formula, PassOrder, deal_markdown, deal_schema, formula_of, index_planner,
    policy_planner, reference_formula,
};
use pleach_dealing::{defaults, make};
use pleach_scheduler::ActionSet;
use pleach_scheduler::heuristics::Info;

use crate::entry::{Entry, PREEMPTION, SHARING};

const REQUIREMENTS: ActionSet = PREEMPTION.union(SHARING);

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
            requirements: REQUIREMENTS,
            defaults: || defaults($name),
            make: |value| make($name, value),
        }
    };
}

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
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
