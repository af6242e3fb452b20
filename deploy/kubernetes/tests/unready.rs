//! Pods that are bound and do not begin give their GPUs back, and pods that have worked are left alone.

use crate::fake::{Fake, World, owned};
use crate::objects::{NOW_S, node, pod, time, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::Kubernetes;
use pleach_kubernetes::mark::{Decided, Key};
use serde_json::json;

const KEY: &str = "a key of more than thirty-two letters";

/// Evictions and notes of a round over a gang whose pods were bound so many seconds ago and are in that phase.
async fn round(pods: &[(i64, &str)], change: impl Fn(&mut Settings, &mut World)) -> (u64, Vec<String>) {
    let mut world = World {
        life_ms: 1_000_000,
        now_s: Some(NOW_S),
        ..World::default()
    };
    let nodes: Vec<String> = (0..pods.len()).map(|rank| format!("n{rank}")).collect();
    let seats: Vec<(String, u32)> = nodes.iter().map(|name| (name.clone(), 1)).collect();
    for (rank, (age_s, phase)) in pods.iter().enumerate() {
        let name = &nodes[rank];
        world.add_node(node(name, 8));
        let mut pod = owned(pod(&format!("w-{rank}"), 8));
        pod["metadata"]["annotations"] =
            json!({ "pleach/gang": "g", "pleach/gang-size": pods.len().to_string() });
        let mark = Decided {
            at_s: NOW_S - age_s,
            seat: name.clone(),
            seats: seats.clone(),
            by: "fifo".into(),
        };
        let text = mark.text(&uid(&format!("w-{rank}")), &Key::of(KEY.as_bytes()));
        pod["metadata"]["annotations"]["pleach/decided"] = json!(text);
        pod["spec"]["schedulingGates"] = json!([]);
        pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": name });
        pod["spec"]["nodeName"] = json!(name);
        pod["status"] = json!({ "phase": phase, "conditions": [{
            "type": "PodScheduled", "status": "True", "lastTransitionTime": time(NOW_S - age_s) }] });
        world.runs(&pod, name);
        world.add_pod(pod);
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    let mut settings = Settings {
        state_dir: folder.path().join("state"),
        mark_key: Some(folder.path().join("key")),
        namespaces: vec!["*".into()],
        ..crate::objects::settings()
    };
    change(&mut settings, &mut world);
    let fake = Fake::still(world).await;
    let mut controller =
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap();
    let notes = controller.round(NOW_S).await;
    let num = fake.world.lock().unwrap().num_evicted;
    (num, notes)
}

fn as_it_is(_: &mut Settings, _: &mut World) {}

#[tokio::test]
async fn a_gang_that_is_not_ready_within_the_limit_gives_its_gpus_back_and_says_so() {
    let (num, notes) = round(&[(2_000, "Pending"), (2_000, "Running")], as_it_is).await;
    assert_eq!(num, 2, "{notes:?}");
    let said = notes.join("\n");
    for part in [
        "w-0, of team/g: bound 2000 s ago and not begun; 2 of its pods are evicted",
        "w-0 did not begin there within 1800 s",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test]
async fn pods_within_the_limit_pods_that_have_begun_and_ranks_that_worked_before_are_left_alone() {
    assert_eq!(
        round(&[(1_700, "Pending"), (1_700, "Running")], as_it_is).await.0,
        0
    );
    assert_eq!(
        round(&[(9_000, "Running"), (9_000, "Running")], as_it_is).await.0,
        0
    );
    // The second was made anew long after the first had begun.
    assert_eq!(
        round(&[(9_000, "Running"), (2_000, "Pending")], as_it_is).await.0,
        1
    );
}

#[tokio::test]
async fn what_no_controller_makes_anew_is_named_and_not_evicted() {
    let (num, notes) = round(&[(2_000, "Pending")], |settings, _| settings.recreate = false).await;
    assert_eq!(num, 0);
    assert!(notes.join("\n").contains("must be deleted by hand"), "{notes:?}");
    let (num, notes) = round(&[(2_000, "Pending"), (2_000, "Pending")], |_, world| {
        world.budgeted = ["w-0", "w-1"].map(String::from).into();
    })
    .await;
    assert_eq!(num, 0);
    assert!(notes.join("\n").contains("not begun; "), "{notes:?}");
}
