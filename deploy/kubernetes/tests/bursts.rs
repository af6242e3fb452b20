//! Many pods at once: what one round starts, and which pods are waited for.

use std::time::Instant;

use crate::driven::Driven;
use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod, uid};

async fn driven(world: World, bind_wait_s: f64) -> Driven {
    // kube-scheduler binds no pod in this round.
    Driven::new(Fake::still(world).await, "fifo", |settings| {
        settings.request_limit_s = 60.0;
        settings.bind_wait_s = bind_wait_s;
    })
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
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, 30.0).await;
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
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, 1.0).await;
    controller.round(NOW_S).await;
    assert_eq!(fake.world.lock().unwrap().lifted, [uid("a")]);
}
