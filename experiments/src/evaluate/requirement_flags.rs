//! What a planner requires of a cluster, as flags of the command line.

use pleach_scheduler::ActionSet;

/// The flags that give what is required, in the order in which `pleach evaluate --help` lists them.
#[must_use]
pub fn requirement_flags(required: ActionSet) -> Vec<&'static str> {
    required.iter().filter_map(|kind| kind.row().flag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::ActionKind;

    #[test]
    fn every_requirement_has_its_flag_and_nothing_has_none() {
        for kind in ActionKind::ALL {
            let has_none = requirement_flags(ActionSet::of(kind)).is_empty();
            assert_eq!(has_none, ActionSet::ALWAYS.contains(kind), "{kind:?}");
        }
        let both = ActionSet::of(ActionKind::Preempt).with(ActionKind::Share);
        assert_eq!(requirement_flags(both), ["--preemption", "--sharing mps"]);
        assert!(requirement_flags(ActionSet::NONE).is_empty());
    }
}
