//! What a planner requires of a cluster, as flags of the command line.

use pleach_scheduler::{ActionKind, ActionSet};

/// The flags that give what is required, in the order in which `pleach evaluate --help` lists them.
#[must_use]
pub fn requirement_flags(required: ActionSet) -> Vec<&'static str> {
    let flags = [
        (ActionKind::Preempt, "--preemption"),
        (ActionKind::Share, "--sharing mps"),
        (ActionKind::MixTypes, "--mixed-types"),
    ];
    let given = flags.iter().filter(|(kind, _)| required.contains(*kind));
    given.map(|(_, flag)| *flag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_has_its_flag_and_nothing_has_none() {
        let all = ActionKind::ALL.into_iter().collect();
        let flags = ["--preemption", "--sharing mps", "--mixed-types"];
        assert_eq!(requirement_flags(all), flags);
        assert!(requirement_flags(ActionSet::NONE).is_empty());
    }
}
