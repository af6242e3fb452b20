//! Annotations that users write: what looks like a controller's mark and is none, and what is longer than anything that is read.

use crate::objects::{NOW_S, let_go, lists, node, pod, settings};
use pleach_daemon::snapshot::{JobSeen, Phase};
use pleach_kubernetes::observe::{Observed, observe};
use pleach_kubernetes::standing::Duty;
use serde_json::{Value, json};

fn reason(job: &JobSeen) -> &str {
    match &job.phase {
        Phase::Blocked { reason } => reason,
        phase => panic!("{phase:?}"),
    }
}

fn see(pods: &[Value]) -> Observed {
    observe(&lists(&[node("n1", 8)], pods, &[]), &settings(), NOW_S)
}

fn one(observed: &Observed) -> &JobSeen {
    assert_eq!(observed.snapshot.jobs.len(), 1, "{:?}", observed.snapshot.jobs);
    &observed.snapshot.jobs[0]
}

/// What the annotation was before it was signed.
fn forged(seat: &str, seats: &Value) -> Value {
    json!(json!({ "at_s": NOW_S - 5, "seat": seat, "seats": seats, "by": "sjf" }).to_string())
}

#[test]
fn marks_that_no_controller_wrote_on_this_very_pod_take_no_gpus_and_open_no_gate() {
    let real = let_go(&pod("real", 8), "n1", &[("n1", 1)]);
    let copied = real["metadata"]["annotations"]["pleach/decided"].clone();
    for mark in [forged("n1", &json!([["n1", 1]])), copied, json!("{}")] {
        // Ungated and pending: a place on every node would be taken, and no other pod would start.
        let mut loose = let_go(&pod("loose", 8), "n1", &[("n1", 1)]);
        loose["metadata"]["annotations"]["pleach/decided"] = mark.clone();
        loose["spec"].as_object_mut().unwrap().remove("nodeSelector");
        let observed = see(&[loose]);
        assert_eq!((&one(&observed).phase, observed.free["n1"]), (&Phase::Loose, 8));
        // Held: more seats than pods look like a release that was cut short, ahead of all that came before.
        let mut held = pod("held", 2);
        held["metadata"]["annotations"] = json!({ "pleach/decided": mark });
        let mut more = held.clone();
        more["metadata"]["annotations"]["pleach/decided"] = forged("n1", &json!([["n1", 2]]));
        for pod in [held, more] {
            let observed = see(&[pod]);
            let job = one(&observed);
            assert_eq!(
                (&job.phase, observed.jobs[&job.id].duty),
                (&Phase::Waiting, Duty::None)
            );
        }
    }
}

#[test]
fn annotations_are_bounded_before_anything_is_made_of_them() {
    // Each of them would be 131,072 names of nodes.
    let many: Vec<Value> = (0..200)
        .map(|number| {
            let mut pod = let_go(&pod(&format!("p{number}"), 1), "n1", &[("n1", 1)]);
            pod["metadata"]["annotations"]["pleach/decided"] = forged("n1", &json!([["n1", 131_072]]));
            pod
        })
        .collect();
    let observed = see(&many);
    assert!(
        observed
            .snapshot
            .jobs
            .iter()
            .all(|job| job.nodes.is_empty() && job.num_nodes == 1)
    );
    // A name of more than 253 bytes is none.
    let mut long = pod("long", 1);
    long["metadata"]["annotations"] = json!({ "pleach/gang": "g".repeat(254), "pleach/gang-size": "2" });
    assert_eq!(one(&see(std::slice::from_ref(&long))).phase, Phase::Waiting);
    long["metadata"]["annotations"]["pleach/gang"] = json!("g".repeat(253));
    assert!(reason(one(&see(std::slice::from_ref(&long)))).contains("1 of 2"));
    // What is kept of a list has nothing else in it.
    for (name, text) in [
        ("pleach/decided", " ".repeat((256 << 10) + 1)),
        ("pleach/gang", "g".repeat(254)),
        ("note", "x".into()),
    ] {
        long["metadata"]["annotations"] = json!({ name: text, "team": "t" });
        long["metadata"]["managedFields"] = json!([{ "manager": "m" }]);
        let pod = lists(&[], &[long.clone()], &[]).pods.remove(0);
        let mut pod = k8s_openapi::api::core::v1::Pod::clone(&pod);
        pleach_kubernetes::pod::trim(&mut pod, Some("team"));
        let kept: Vec<String> = pod.metadata.annotations.unwrap().into_keys().collect();
        assert_eq!(kept, ["team"], "{name}");
        assert_eq!(pod.metadata.managed_fields, None);
    }
}
