//! Policies that can be imitated or corrected, by name.

use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::heuristics;
use pleach_scheduler::{ActionKind, ActionSet};

use crate::door::{DOOR, own_policies, requirement_flags};
use crate::error::Error;

/// Refuses a teacher that cannot be imitated candidate by candidate: an unknown name, or a planner that stops running jobs,
/// mixes GPU types, or shares GPUs where the cluster does not.
///
/// # Errors
/// The name with what is allowed.
pub(crate) fn check_teacher(name: &str, capabilities: Capabilities) -> Result<(), Error> {
    let no_candidate = ActionSet::of(ActionKind::Preempt).with(ActionKind::MixTypes);
    let can_teach = |required: ActionSet| required.intersection(no_candidate).is_empty();
    let teachers: Vec<&str> = DOOR
        .planners()
        .filter(|entry| can_teach(entry.requirements))
        .map(|entry| entry.info.name)
        .collect();
    let Some(planner) = DOOR.find(name) else {
        let own = own_policies().iter().map(|own| own.info.name);
        let others: Vec<&str> = ["best", "none"].into_iter().chain(teachers).chain(own).collect();
        return check_heuristic("warm_start", name, &others);
    };
    let missing = planner.requirements.difference(capabilities.actions());
    Error::refuse_if(
        !(can_teach(planner.requirements) && missing.is_empty()),
        "warm_start",
        name,
        format_args!("a heuristic, or one of the planners {}", teachers.join(", ")),
        if can_teach(planner.requirements) {
            format!("{name} needs {}.", requirement_flags(missing).join(" and "))
        } else {
            format!("{name} stops running jobs or mixes GPU types, which no candidate does.")
        },
    )
}

/// Refuses what is neither a heuristic's name nor one of the other words that the key takes.
///
/// # Errors
/// Key and value with all that is allowed, and the nearest of it.
pub(crate) fn check_heuristic(key: &str, name: &str, others: &[&'static str]) -> Result<(), Error> {
    let known: Vec<&'static str> = others.iter().chain(heuristics::names()).copied().collect();
    if known.contains(&name) {
        return Ok(());
    }
    let nearest = heuristics::nearest_of(&known, name).unwrap_or("best");
    let hint = format!("Did you mean {nearest}? pleach policies says what each one does.");
    Err(Error::config(key, name, known.join(", "), hint))
}
