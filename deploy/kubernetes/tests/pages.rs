//! Lists whose pages are longer than an answer may be: users decide how large a pod is.

use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes};
use serde_json::json;

/// Pods of a namespace that is not driven, with this many bytes of environment each.
fn fat(num: usize, bytes: usize) -> World {
    let mut world = World::default();
    world.add_node(node("n1", 8));
    world.add_pod(pod("held", 1));
    for number in 0..num {
        let mut pod = pod(&format!("fat-{number}"), 0);
        pod["metadata"]["namespace"] = json!("other");
        pod["spec"]["schedulingGates"] = json!([]);
        pod["spec"]["containers"][0]["resources"] = json!({});
        pod["spec"]["containers"][0]["env"] = json!([{ "name": "BIG", "value": "x".repeat(bytes) }]);
        world.add_pod(pod);
    }
    world
}

async fn driven(folder: &tempfile::TempDir, fake: &Fake) -> Controller {
    let settings = Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        namespaces: vec!["team".into()],
        answer_bytes_max: 1 << 20,
        ..Settings::default()
    };
    Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap()
}

#[tokio::test]
async fn pods_of_a_megabyte_each_fail_no_round() {
    let folder = tempfile::tempdir().unwrap();
    // Five times an answer in all.
    let fake = Fake::still(fat(50, 100_000)).await;
    let mut controller = driven(&folder, &fake).await;
    controller.round(NOW_S).await;
    let status = controller.status();
    assert_eq!(
        (status.num_failed, status.num_starts),
        (0, 1),
        "{}",
        status.last_error
    );
    // What was found is kept: the next round asks for no page that is too long.
    let before = fake.world.lock().unwrap().num_requests;
    controller.round(NOW_S + 2).await;
    let num_requests = fake.world.lock().unwrap().num_requests - before;
    assert!(num_requests <= 12, "{num_requests}");
    assert_eq!(
        controller.status().num_failed,
        0,
        "{}",
        controller.status().last_error
    );
}

#[tokio::test]
async fn one_pod_that_is_longer_than_an_answer_fails_the_round_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::still(fat(3, 2 << 20)).await;
    let mut controller = driven(&folder, &fake).await;
    let notes = controller.round(NOW_S).await;
    assert_eq!(controller.status().num_failed, 1);
    assert!(
        notes
            .iter()
            .any(|note| note.contains("list of pods") && note.contains("length limit")),
        "{notes:?}"
    );
}
