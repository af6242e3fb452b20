//! When rounds begin, when they rest, and what of an object is a change.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::fake::{World, owned};
use crate::objects::{NOW_S, node, pod, uid};
use crate::suspended;
use crate::watches::{Site, settings};

/// Whether a round is begun within a second because of a change.
async fn wakes(site: &Site, change: impl FnOnce(&mut World)) -> bool {
    // What was before is over.
    sleep(Duration::from_secs(3)).await;
    while timeout(Duration::from_millis(10), site.changes.notified())
        .await
        .is_ok()
    {}
    site.world(change);
    timeout(Duration::from_secs(1), site.changes.notified())
        .await
        .is_ok()
}

#[tokio::test(start_paused = true)]
async fn rounds_begin_when_something_is_to_be_decided_and_not_else() {
    let mut world = World {
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 8));
    let site = Site::new(world);
    site.kept.lists().await.unwrap();
    assert!(
        wakes(&site, |world| world.add_pod(pod("held", 1))).await,
        "a pod comes"
    );
    let mut free = pod("free", 1);
    free["spec"]["schedulingGates"] = json!([]);
    let other = free.clone();
    assert!(
        !wakes(&site, |world| world.add_pod(free)).await,
        "a pod of others comes"
    );
    assert!(!wakes(&site, World::tick).await, "it is bound");
    assert!(wakes(&site, |world| world.end("free")).await, "it ends");
    let mut small = other;
    small["metadata"]["name"] = json!("small");
    small["metadata"]["uid"] = json!(uid("small"));
    small["spec"]["containers"][0]["resources"] = json!({});
    assert!(
        !wakes(&site, |world| world.add_pod(small)).await,
        "one without GPUs comes"
    );
    assert!(!wakes(&site, |world| world.end("small")).await, "and ends");
    let cordon =
        |world: &mut World| world.nodes.get_mut("n1").unwrap()["spec"]["unschedulable"] = json!(true);
    assert!(wakes(&site, cordon).await, "a node is cordoned");
    let beat = |world: &mut World| {
        let status = &mut world.nodes.get_mut("n1").unwrap()["status"];
        status["conditions"][0]["lastHeartbeatTime"] = json!("2026-01-01T00:00:00Z");
        status["images"] = json!([{ "names": ["train:1"], "sizeBytes": 1 }]);
    };
    assert!(!wakes(&site, beat).await, "a kubelet writes");
    let annotate = |world: &mut World| {
        let key = ("team".to_owned(), "held".to_owned());
        world.pods.get_mut(&key).unwrap()["metadata"]["annotations"] = json!({ "pleach/estimate-s": "60" });
    };
    assert!(!wakes(&site, annotate).await, "a user writes");
}

#[tokio::test(start_paused = true)]
async fn rounds_rest_while_nothing_changes_and_go_on_with_the_first_change() {
    let mut world = World {
        life_ms: 1_000_000,
        now_s: Some(NOW_S),
        ..World::default()
    };
    world.add_node(node("n1", 8));
    for name in ["a", "b"] {
        world.add_pod(owned(pod(name, 8)));
    }
    let site = Site::new(world);
    site.agrees("at first").await;
    let mut controller = site.controller();
    let mut round = async |after_s: i64| {
        sleep(Duration::from_secs(2)).await;
        let notes = controller.round(NOW_S + after_s).await;
        assert_eq!(notes, Vec::<String>::new());
        // How long it took to look, which no two looks take alike; and when it was last seen that all is well.
        let is_shown = controller.system().view().last(Duration::from_secs(1)).is_some();
        assert!(is_shown && controller.status().at_s == NOW_S + after_s);
        (controller.status().observe_s, controller.status().num_waiting)
    };
    assert_eq!(round(0).await.1, 2);
    site.world(World::tick);
    let looked = round(2).await;
    assert_eq!(looked.1, 1);
    for after_s in (4..22).step_by(2) {
        assert_eq!(round(after_s).await, looked);
    }
    let again = round(22).await;
    assert_ne!(again.0, looked.0);
    assert_eq!(round(24).await, again);
    // Nodes that only show that they live, change nothing; a job that ends does.
    site.world(|world| {
        world.end("a");
        world.tick();
    });
    assert_eq!(round(26).await.1, 1);
    assert_eq!(site.world(|world| world.lifted.clone()), [uid("a"), uid("b")]);
    site.world(World::tick);
    assert_eq!(round(28).await.1, 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_pods_are_counted_stays_the_very_one_and_is_changed_by_its_newest_version() {
    let mut world = World {
        now_s: Some(NOW_S),
        ..World::default()
    };
    world.add_node(node("n1", 8));
    let folder = tempfile::tempdir().unwrap();
    world.make_job(suspended::job("fit", 1, 8), &settings(&folder));
    let site = Site::new(world);
    site.agrees("at first").await;
    let kept = async || site.kept.lists().await.unwrap().jobs.remove(0);
    let change = |change: &dyn Fn(&mut Value)| {
        site.world(|world| {
            world.version += 1;
            let version = world.version.to_string();
            change(&mut world.jobs[0]);
            world.jobs[0]["metadata"]["resourceVersion"] = json!(version);
        });
    };
    let before = kept().await;
    // So is what the Job controller says of `suspend`.
    let suspended = json!([{ "type": "Suspended", "status": "True", "reason": "JobSuspended" }]);
    change(&|job| job["status"] = json!({ "active": 1, "ready": 1, "conditions": suspended }));
    sleep(Duration::from_secs(3)).await;
    assert!(Arc::ptr_eq(&before, &kept().await));
    // The API server refuses every other version.
    assert_eq!(site.controller().round(NOW_S).await, Vec::<String>::new());
    assert_eq!(
        site.world(|world| world.jobs[0]["spec"]["suspend"].clone()),
        false
    );
    let before = kept().await;
    change(&|job| job["status"]["succeeded"] = json!(1));
    sleep(Duration::from_secs(3)).await;
    assert!(!Arc::ptr_eq(&before, &kept().await));
}
