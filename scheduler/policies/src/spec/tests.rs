//! What a planner requires of a cluster has a flag each.

use pleach_scheduler::ActionKind;

use super::*;

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
