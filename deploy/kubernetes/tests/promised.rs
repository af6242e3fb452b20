//! The controller's guard of a promise: the fallback decides where pods wait longer than was promised, and the Lease has an Event.

use std::time::{Duration, Instant};

use pleach_daemon::round_facts::DecidedBy;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes};

use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod};

const PROMISE: &str = r#"{"version": 1, "policy": "fifo", "before": "easy", "wait_factor": 1.0, "num_days": 20.0, "world": {},
    "rows": [{"by": "all", "name": "all", "num_jobs": 480, "figures": {
        "wait_s": {"value": 600.0, "low": 300.0, "high": 900.0},
        "wait_s_p99": {"value": 7200.0, "low": 7000.0, "high": 7400.0}}}]}"#;

/// Half a day: a fourteenth of the window.
const PART_S: i64 = 43_200;

#[tokio::test]
async fn where_pods_waited_longer_than_promised_the_fallback_decides_until_the_policy_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(folder.path().join("promise.json"), PROMISE).unwrap();
    // What a controller of the last days has counted: 150 jobs that waited 2000 s in the mean.
    let waits = format!(
        r#"{{"about": [1080, 8640, 604800], "since_s": {}, "blocked": {{}}, "broken": null,
            "parts": {{"{}": {{"num_jobs": 150, "wait_s": 300000, "jct_s": 900000, "num_late": 0}}}}}}"#,
        NOW_S - 8 * 86_400,
        NOW_S / PART_S - 3
    );
    std::fs::write(state.join("waits.json"), waits).unwrap();
    let mut world = World::default();
    world.add_node(node("n1", 8));
    world.add_pod(pod("a", 1));
    let fake = Fake::start(world).await;
    let mut settings = Settings {
        state_dir: state,
        request_limit_s: 20.0,
        lease: Some("pleach/pleach".into()),
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    settings.rounds.promise = Some(folder.path().join("promise.json"));
    settings.rounds.fallback = Some("sjf".into());
    let open = || -> Controller {
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap()
    };
    let mut controller = open();
    let notes = controller.round(NOW_S).await;
    let why = "150 jobs waited 2000 s in the mean, promised is 600 s [300, 900] and a margin of 20 %";
    assert!(notes.iter().any(|note| note.contains(why)), "{notes:?}");
    assert_eq!(controller.status().truth.decided_by, DecidedBy::Fallback);
    assert_eq!(
        controller.status().num_starts,
        1,
        "the pod is let go all the same"
    );
    let begin = Instant::now();
    let event = loop {
        let events = fake.world.lock().unwrap().events.clone();
        let found = events
            .into_iter()
            .find(|(_, event)| event["involvedObject"]["kind"] == "Lease");
        match found {
            Some((_, event)) => break event,
            None if begin.elapsed() > Duration::from_secs(30) => panic!("no event on the Lease"),
            None => tokio::time::sleep(Duration::from_millis(3)).await,
        }
    };
    assert_eq!(
        (event["reason"].as_str(), event["type"].as_str()),
        (Some("PleachFallsBack"), Some("Warning"))
    );
    assert!(event["message"].as_str().unwrap().contains(why), "{event}");
    // Another controller stays with it; read again, the policy decides.
    drop(controller);
    let mut controller = open();
    fake.world.lock().unwrap().add_pod(pod("b", 1));
    controller.round(NOW_S + 10).await;
    assert_eq!(controller.status().truth.decided_by, DecidedBy::Fallback);
    controller.reload().unwrap();
    fake.world.lock().unwrap().add_pod(pod("c", 1));
    controller.round(NOW_S + 20).await;
    assert_eq!(controller.status().truth.decided_by, DecidedBy::Policy);
}
