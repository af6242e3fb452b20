//! Two controllers and one Lease.

use std::time::Duration;

use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes};

fn controller(fake: &Fake, folder: &tempfile::TempDir, name: &str, shadow: bool) -> Controller {
    let settings = Settings {
        state_dir: folder.path().join(name),
        request_limit_s: 20.0,
        lease: Some("pleach/pleach".into()),
        lease_s: 2,
        identity: name.into(),
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", shadow).unwrap()
}

#[tokio::test]
async fn one_of_two_controllers_drives_and_the_other_takes_over_once_it_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::default();
    world.add_node(node("n1", 8));
    world.add_pod(pod("a", 1));
    let fake = Fake::still(world).await;
    let (mut one, mut two) = (
        controller(&fake, &folder, "one", false),
        controller(&fake, &folder, "two", false),
    );
    one.round(NOW_S).await;
    assert_eq!(one.status().num_starts, 1, "{}", one.status().last_error);
    fake.world.lock().unwrap().add_pod(pod("b", 1));
    // It stands by: it looks, so that its server answers, and touches nothing.
    for _ in 0..3 {
        let notes = two.round(NOW_S).await;
        assert!(
            notes[0].contains("stands by: one drives, by the Lease pleach/pleach"),
            "{notes:?}"
        );
        one.round(NOW_S).await;
        assert!(two.system().view().last(Duration::from_secs(60)).is_some());
    }
    assert_eq!((two.status().num_starts, one.status().num_starts), (0, 2));
    // The first one is silent for as long as the Lease lasts, by the clock of the second one.
    fake.world.lock().unwrap().add_pod(pod("c", 1));
    two.round(NOW_S).await;
    assert_eq!(two.status().num_starts, 0);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    two.round(NOW_S).await;
    assert_eq!(two.status().num_starts, 1, "{}", two.status().last_error);
    // Back again, the first one finds it taken.
    fake.world.lock().unwrap().add_pod(pod("d", 1));
    let notes = one.round(NOW_S).await;
    assert!(notes[0].contains("two drives"), "{notes:?}");
    let lifted = fake.world.lock().unwrap().lifted.clone();
    assert_eq!(lifted, ["a", "b", "c"].map(uid));
    // Given back, it is had at once.
    two.system().give_lease_back().await.unwrap();
    one.round(NOW_S).await;
    assert_eq!(one.status().num_starts, 3);
    let world = fake.world.lock().unwrap();
    assert_eq!(world.lease.as_ref().unwrap()["spec"]["leaseTransitions"], 3);
}

/// Lists take longer than a Lease counts as ours after it was renewed: two thirds of it.
#[tokio::test]
async fn lists_that_take_longer_than_the_lease_stop_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World {
        list_pause: Duration::from_millis(2200),
        ..World::default()
    };
    world.add_node(node("n1", 8));
    world.add_pod(pod("a", 1));
    let fake = Fake::still(world).await;
    let mut one = controller(&fake, &folder, "one", false);
    let mut two = controller(&fake, &folder, "two", false);
    let (lease, pulse) = (one.system().lease().unwrap(), one.pulse());
    let cluster = fake.cluster(one.system().settings());
    let beside = tokio::spawn(async move { lease.renew(&cluster, &pulse, || NOW_S).await });
    let notes = one.round(NOW_S).await;
    assert_eq!(one.status().num_starts, 1, "{notes:?}");
    // Nor does another controller take it meanwhile, though a look of its own takes as long.
    for _ in 0..2 {
        let notes = two.round(NOW_S).await;
        assert!(notes[0].contains("stands by: one drives"), "{notes:?}");
    }
    beside.abort();
}

/// Renewing it is for those that decide: a loop that hangs keeps it from no other one.
#[tokio::test]
async fn a_controller_whose_rounds_hang_loses_the_lease() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::default();
    world.add_node(node("n1", 8));
    let fake = Fake::still(world).await;
    let mut one = controller(&fake, &folder, "one", false);
    one.round(NOW_S).await;
    let lease = one.system().lease().unwrap();
    let cluster = fake.cluster(one.system().settings());
    // A loop that never gave a life sign.
    let dead = pleach_daemon::pulse::Pulse::default();
    let beside = tokio::spawn(async move { lease.renew(&cluster, &dead, || NOW_S).await });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!one.system().lease().unwrap().is_ours());
    beside.abort();
}

#[tokio::test]
async fn shadow_mode_takes_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::default();
    world.add_node(node("n1", 8));
    let fake = Fake::still(world).await;
    controller(&fake, &folder, "one", true).round(NOW_S).await;
    assert_eq!(fake.world.lock().unwrap().lease, None);
}
