//! The controller against an API server in memory: order and placement, and every way to end badly.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::fake::{Fake, World, owned};
use crate::objects::{node, pod, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes, hand_back};
use pleach_kubernetes::mark::{Decided, Key};
use serde_json::{Value, json};

pub fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

pub fn settings(folder: &tempfile::TempDir) -> Settings {
    Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        bind_wait_s: 0.5,
        page: 100,
        namespaces: vec!["*".into()],
        ..Settings::default()
    }
}

pub fn world(nodes: &[(&str, u32)]) -> World {
    let mut world = World {
        life_ms: 20,
        ..World::default()
    };
    for (name, gpus) in nodes {
        world.add_node(node(name, *gpus));
    }
    world
}

pub fn with(mut pod: Value, annotations: Value) -> Value {
    pod["metadata"]["annotations"] = annotations;
    pod
}

/// How long anything may take to happen, on a machine that is busy with other things.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Rounds until no pod is left; notes of all of them.
pub async fn until_all_ended(fake: &Fake, controller: &mut Controller) -> Vec<String> {
    let mut notes = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        notes.extend(controller.round(now_s()).await);
        if fake.world.lock().unwrap().num_left() == 0 {
            return notes;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let world = fake.world.lock().unwrap();
    let left: Vec<&Value> = world
        .pods
        .values()
        .filter(|pod| pod["status"]["phase"] != "Succeeded")
        .collect();
    panic!("{} pods are left: {:#?}\n{notes:#?}", left.len(), left.first());
}

#[tokio::test]
async fn pods_start_in_the_order_and_at_the_places_of_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 4)]);
    for (name, estimate_s) in [
        ("a", "500"),
        ("b", "100"),
        ("c", "300"),
        ("d", "200"),
        ("e", "400"),
    ] {
        world.add_pod(with(pod(name, 4), json!({ "pleach/estimate-s": estimate_s })));
    }
    let fake = Fake::start(world).await;
    let settings = settings(&folder);
    let mut controller = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "sjf", false).unwrap();
    until_all_ended(&fake, &mut controller).await;
    let world = fake.world.lock().unwrap();
    let order: Vec<&str> = world.binds.iter().map(|(uid, _)| uid.as_str()).collect();
    assert_eq!(order, ["b", "d", "c", "e", "a"].map(uid));
    assert_eq!(controller.status().num_starts, 5);
    assert_eq!(
        controller.status().num_failed,
        0,
        "{}",
        controller.status().last_error
    );
}

#[tokio::test]
async fn a_gang_gets_whole_nodes_and_one_for_the_rest_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 8), ("n2", 8)]);
    for rank in 0..6 {
        let annotations = json!({ "pleach/gang": "g", "pleach/gang-size": "6" });
        world.add_pod(with(pod(&format!("w-{rank}"), 2), annotations));
    }
    let fake = Fake::start(world).await;
    let settings = settings(&folder);
    let mut controller =
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap();
    until_all_ended(&fake, &mut controller).await;
    let world = fake.world.lock().unwrap();
    let nodes: Vec<&str> = world.binds.iter().map(|(_, node)| node.as_str()).collect();
    assert_eq!(
        nodes.iter().filter(|node| **node == nodes[0]).count(),
        4,
        "{nodes:?}"
    );
    assert_eq!(controller.status().num_starts, 1);
}

#[tokio::test]
async fn shadow_mode_writes_what_it_would_do_and_touches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 4)]);
    for name in ["a", "b"] {
        world.add_pod(pod(name, 4));
    }
    let mut foreign = pod("odd", 1);
    foreign["spec"]["resourceClaims"] = json!([{ "name": "gpu" }]);
    world.add_pod(foreign);
    let fake = Fake::start(world).await;
    let settings = settings(&folder);
    let mut controller = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", true).unwrap();
    // A pod that asks for devices by claims waits with the others, and is left to kube-scheduler in its turn.
    let told = "team/odd waits for its turn and is then left to kube-scheduler: it asks for devices by resource claims (DRA)";
    for _ in 0..3 {
        assert_eq!(controller.round(now_s()).await, [told]);
    }
    let status = controller.status();
    assert_eq!(
        (status.num_starts, status.num_waiting, status.num_foreign),
        (3, 3, 0)
    );
    let world = fake.world.lock().unwrap();
    assert_eq!((world.num_writes, world.lifted.len()), (0, 0));
    let log = std::fs::read_to_string(settings.state_dir.join("decisions.jsonl")).unwrap();
    assert_eq!(log.lines().count(), 3);
}

#[tokio::test]
async fn what_the_policy_cannot_be_told_of_is_given_back_and_an_operator_gets_all_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 8)]);
    let mut odd = pod("odd", 1);
    odd["spec"]["resourceClaims"] = json!([{ "name": "gpu" }]);
    world.add_pod(odd);
    let mut queued = pod("queued", 1);
    queued["spec"]["schedulingGates"] =
        json!([{ "name": "kueue.x-k8s.io/admission" }, { "name": "pleach/hold" }]);
    world.add_pod(queued);
    world.life_ms = 60_000;
    let fake = Fake::start(world).await;
    let settings = settings(&folder);
    let cluster = fake.cluster(&settings);
    let mut controller = Kubernetes::driver(settings.clone(), cluster.clone(), "fifo", false).unwrap();
    controller.round(now_s()).await;
    {
        let world = fake.world.lock().unwrap();
        assert_eq!(world.lifted, [uid("odd")]);
        let left =
            &world.pods[&("team".to_owned(), "odd".to_owned())]["metadata"]["annotations"]["pleach/left"];
        assert!(left.as_str().unwrap().contains("DRA"));
    }
    fake.world.lock().unwrap().add_pod(pod("late", 1));
    drop(controller);
    assert_eq!(hand_back(&cluster, &settings).await.unwrap(), (2, Vec::new()));
    assert_eq!(hand_back(&cluster, &settings).await.unwrap(), (0, Vec::new()));
    let world = fake.world.lock().unwrap();
    let gates = &world.pods[&("team".to_owned(), "queued".to_owned())]["spec"]["schedulingGates"];
    assert_eq!(
        *gates,
        json!([{ "name": "kueue.x-k8s.io/admission" }]),
        "the gates of others stay"
    );
    assert_eq!(world.lifted.len(), 3);
}

#[tokio::test]
async fn a_gang_that_is_marked_and_then_handed_back_loses_its_marks() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 8), ("n2", 8)]);
    for rank in 0..3 {
        let annotations = json!({ "pleach/gang": "g", "pleach/gang-size": "3" });
        world.add_pod(with(pod(&format!("w-{rank}"), 4), annotations));
    }
    world.life_ms = 60_000;
    let fake = Fake::start(world).await;
    let mut settings = settings(&folder);
    std::fs::create_dir(&settings.state_dir).unwrap();
    settings.marks = Key::take(settings.key_place()).unwrap();
    let cluster = fake.cluster(&settings);
    let marks = || {
        let world = fake.world.lock().unwrap();
        let mark = |pod: &&Value| pod["metadata"]["annotations"].get("pleach/decided").is_some();
        world.pods.values().filter(mark).count()
    };
    // What a controller leaves behind that is killed between the last mark and the first release.
    for pod in cluster.pods().await.unwrap() {
        let pod = pleach_kubernetes::pod::read(&pod, &settings).unwrap();
        let mark = Decided {
            at_s: now_s(),
            seat: "n1".into(),
            seats: vec![("n1".into(), 2), ("n2".into(), 1)],
            by: "fifo".into(),
        };
        cluster
            .mark(&pod, Some(&mark.text(&pod.uid, &settings.marks)))
            .await
            .unwrap();
    }
    assert_eq!((marks(), fake.world.lock().unwrap().lifted.len()), (3, 0));
    assert_eq!(hand_back(&cluster, &settings).await.unwrap(), (3, Vec::new()));
    assert_eq!((marks(), fake.world.lock().unwrap().lifted.len()), (0, 3));
    // They are not taken for a gang that has its place: the next controller leaves them to kube-scheduler.
    let mut controller = Kubernetes::driver(settings.clone(), cluster.clone(), "fifo", false).unwrap();
    controller.round(now_s()).await;
    assert_eq!((marks(), controller.status().num_starts), (0, 0));
}

#[tokio::test]
async fn a_preempted_pod_is_evicted_by_its_uid_and_comes_back_held() {
    a_long_pod_gives_way("srtf").await;
}

#[tokio::test]
async fn a_dealer_evicts_the_pods_whose_gpus_it_deals_to_others_and_they_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shortest.json");
    let rules = r#""rules": {"deal_min_s": 1.0, "deal_max_s": 3600.0, "pack_above": 1.1, "reseat_loss": 1.0, "preempt": true,
        "reseat": true, "share": true, "cores": true, "resize": true, "stint": 0.0}"#;
    let formula = format!(r#"{{"version": 1, {rules}, "weights": {{"rest": -1.0}}}}"#);
    std::fs::write(&path, formula).unwrap();
    a_long_pod_gives_way(path.to_str().unwrap()).await;
}

/// A pod of 100,000 s holds the one node when one of 10 s comes.
async fn a_long_pod_gives_way(policy: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 4)]);
    world.add_pod(owned(with(
        pod("long", 4),
        json!({ "pleach/estimate-s": "100000", "life-ms": "60000" }),
    )));
    let fake = Fake::start(world).await;
    let mut settings = settings(&folder);
    settings.rounds.preemption = true;
    settings.rounds.restart_cost_s = 1.0;
    let mut controller =
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), policy, false).unwrap();
    // Clocks of pods count whole seconds: what began within this one is stopped in the next at the earliest.
    let rounds_until = async |controller: &mut Controller, num_binds: usize| {
        let begin = Instant::now();
        while begin.elapsed() < LIMIT {
            controller.round(now_s()).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            if fake.world.lock().unwrap().binds.len() == num_binds {
                return;
            }
        }
        let world = fake.world.lock().unwrap();
        panic!(
            "{:?} instead of {num_binds}: {:?}",
            world.binds,
            controller.status()
        );
    };
    rounds_until(&mut controller, 1).await;
    fake.world
        .lock()
        .unwrap()
        .add_pod(with(pod("short", 4), json!({ "pleach/estimate-s": "10" })));
    rounds_until(&mut controller, 3).await;
    let world = fake.world.lock().unwrap();
    assert_eq!(world.num_evicted, 1);
    assert_eq!(
        [&world.binds[0].0, &world.binds[1].0],
        [&uid("long"), &uid("short")]
    );
    let again = &world.pods[&("team".to_owned(), "longx1".to_owned())];
    assert_eq!(again["metadata"]["uid"], world.binds[2].0);
}

#[tokio::test]
async fn run_times_are_learned_from_pods_that_leave_and_told_with_their_source() {
    use pleach_daemon::config::EstimatesFrom;
    use pleach_daemon::replay::Replay;
    use pleach_scheduler::Provenance;
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 4)]);
    world.life_ms = 1_000_000;
    let limit = json!({ "pleach/estimate-s": "500" });
    world.add_pod(with(pod("a", 4), limit.clone()));
    let fake = Fake::start(world).await;
    let mut settings = settings(&folder);
    settings.rounds.estimates.from = EstimatesFrom::History;
    let mut controller = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "sjf", false).unwrap();
    let begin_s = now_s();
    // It is let go in one round, and bound when the scheduler comes to it.
    let begin = Instant::now();
    while fake.world.lock().unwrap().binds.is_empty() {
        controller.round(begin_s).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(begin.elapsed() < LIMIT, "the pod does not start");
    }
    controller.round(begin_s + 100).await;
    {
        let mut world = fake.world.lock().unwrap();
        for pod in world.pods.values_mut() {
            pod["status"]["phase"] = json!("Succeeded");
        }
        world.add_pod(with(pod("b", 4), limit));
    }
    // Another controller, which finds what the first one learned.
    drop(controller);
    let mut controller = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "sjf", false).unwrap();
    controller.round(begin_s + 110).await;
    let log = Replay::open(&settings.state_dir.join("decisions.jsonl")).unwrap();
    let told: Vec<_> = log
        .flat_map(|record| record.unwrap().decisions)
        .map(|planned| planned.estimate_s.unwrap())
        .collect();
    assert_eq!(
        (told[0].value, told[0].provenance),
        (500.0, Provenance::UserLimit)
    );
    // It left between the looks at 100 s and 110 s.
    assert!((told[1].value - 105.0).abs() < 1e-9, "{told:?}");
    assert_eq!((told.len(), told[1].provenance), (2, Provenance::Predicted));
}
