//! Many pods at once: what one round starts, and who is waited for.

use std::time::{Duration, Instant};

use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes};
use tokio::sync::Notify;

async fn driven(world: World, bind_wait_s: f64) -> (Fake, Controller, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 60.0,
        bind_wait_s,
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    // kube-scheduler binds nobody in this round.
    let fake = Fake::still(world).await;
    let controller = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap();
    (fake, controller, folder)
}

/// Eight nodes of eight GPUs and 100 pods of one. Where each had to wait for the one before it on its node to be bound, a round
/// started eight.
#[tokio::test]
async fn all_free_gpus_are_given_in_one_round_though_nobody_is_bound_yet() {
    let mut world = World::default();
    for number in 1..=8 {
        world.add_node(node(&format!("n{number}"), 8));
    }
    for number in 0..100 {
        let mut pod = pod(&format!("p-{number:03}"), 1);
        pod["metadata"]["uid"] = format!("123e4567-e89b-42d3-a456-{number:012x}").into();
        world.add_pod(pod);
    }
    let (fake, mut controller, _folder) = driven(world, 30.0).await;
    let began = Instant::now();
    controller.round(NOW_S).await;
    assert_eq!(
        controller.status().num_starts,
        64,
        "{}",
        controller.status().last_error
    );
    println!(
        "64 pods on 8 nodes are let go in {:.0} ms of a round, {:.0} a second",
        controller.status().apply_s * 1e3,
        64.0 / controller.status().apply_s
    );
    assert!(began.elapsed().as_secs_f64() < 30.0, "somebody was waited for");
    assert_eq!(fake.world.lock().unwrap().lifted.len(), 64);
    // Nor does the next round give more than there is.
    controller.round(NOW_S + 2).await;
    assert_eq!(controller.status().num_starts, 64);
}

/// A node without the memory for a second pod gets one, whatever GPUs are left: that is counted too.
#[tokio::test]
async fn memory_of_a_node_is_counted_over_the_starts_of_a_round() {
    let mut world = World::default();
    let mut small = node("n1", 8);
    small["status"]["allocatable"]["memory"] = "24Gi".into();
    world.add_node(small);
    world.add_pod(pod("a", 1));
    world.add_pod(pod("b", 1));
    let (fake, mut controller, _folder) = driven(world, 1.0).await;
    controller.round(NOW_S).await;
    assert_eq!(fake.world.lock().unwrap().lifted, [uid("a")]);
}

/// What is free is given again when a pod ends and not at the next tick: whoever waits for rounds is told of it.
#[tokio::test]
async fn a_pod_that_ends_is_told_at_once() {
    let mut world = World {
        life_ms: 300,
        ..World::default()
    };
    world.add_node(node("n1", 1));
    let mut free = pod("a", 1);
    free["spec"]["schedulingGates"] = serde_json::json!([]);
    world.add_pod(free);
    let settings = Settings::default();
    let fake = Fake::start(world).await;
    let (cluster, changes) = (fake.cluster(&settings), Notify::new());
    let ended = || fake.world.lock().unwrap().num_left() == 0;
    tokio::select! {
        () = cluster.tell_ends(&changes) => unreachable!("a watch is followed by the next"),
        () = changes.notified() => assert!(ended(), "told before"),
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("nobody was told; ended: {}", ended()),
    }
}

#[tokio::test]
async fn watches_that_are_cut_at_once_are_asked_for_once_a_second() {
    let world = World {
        cuts_watches: true,
        ..World::default()
    };
    let fake = Fake::still(world).await;
    let (cluster, changes) = (fake.cluster(&Settings::default()), Notify::new());
    let told = tokio::time::timeout(Duration::from_millis(2500), cluster.tell_ends(&changes)).await;
    assert!(told.is_err(), "it goes on");
    let num = fake.world.lock().unwrap().num_watches;
    assert!((1..=3).contains(&num), "{num} watches in two seconds and a half");
}
