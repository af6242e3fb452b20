//! Published planners at the door of programs that simulate.

use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_scheduler::Capabilities;

use crate::registered;

#[test]
fn a_planner_says_what_it_needs_and_takes_settings_of_its_own() {
    registered();
    let mut all = DOOR
        .open_all(&["fifo".into(), "tiresias".into(), "hadar".into()])
        .unwrap();
    let bare = Capabilities::DEFAULT;
    assert!(all[0].check(bare).is_ok());
    let refused = all[2].check(bare).unwrap_err().to_string();
    assert!(
        refused.contains("--preemption and --actions mixed_types"),
        "{refused}"
    );
    assert!(all[2].check(bare.with_actions(all[2].asks().unwrap())).is_ok());
    let settings = serde_json::json!({"tiresias": {"quantum_gpu_s": 1000.0}});
    PolicySpec::configure(&mut all, &settings).unwrap();
    for (wrong, word) in [
        (serde_json::json!({"fifo": {}}), "policy-config"),
        (serde_json::json!({"tiresias": {"quantum": 1}}), "quantum_gpu_s"),
    ] {
        let text = PolicySpec::configure(&mut all, &wrong).unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    }
    assert!(all[1].policy().is_err() && all[1].make_planner().is_ok());
}

#[test]
fn a_dealer_does_without_what_the_cluster_cannot_do_and_other_planners_do_not() {
    registered();
    let all = DOOR
        .open_all(&["index".into(), "las-deal".into(), "gandiva".into()])
        .unwrap();
    let bare = Capabilities::DEFAULT;
    let fits: Vec<bool> = all.iter().map(|spec| spec.check(bare).is_ok()).collect();
    assert_eq!(fits, [true, true, false]);
}
