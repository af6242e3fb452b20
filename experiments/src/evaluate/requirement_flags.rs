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
        let all = ActionKind::ALL.into_iter().collect();
        let flags = ["--preemption", "--sharing mps", "--mixed-types"];
        assert_eq!(requirement_flags(all), flags);
        assert!(requirement_flags(ActionSet::NONE).is_empty());
    }
}
