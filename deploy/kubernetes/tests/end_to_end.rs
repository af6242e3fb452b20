//! The controller against an API server in memory: order and placement, and every way to end badly.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::fake::{Fake, World, owned};
use crate::objects::{node, pod, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes, hand_back};
use pleach_kubernetes::mark::{Decided, Key};
use serde_json::{Value, json};

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn settings(folder: &tempfile::TempDir) -> Settings {
    Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        bind_wait_s: 0.5,
        page: 100,
        namespaces: vec!["*".into()],
        ..Settings::default()
    }
}

fn world(nodes: &[(&str, u32)]) -> World {
    let mut world = World {
        life_ms: 20,
        ..World::default()
    };
    for (name, gpus) in nodes {
        world.add_node(node(name, *gpus));
    }
    world
}

fn with(mut pod: Value, annotations: Value) -> Value {
    pod["metadata"]["annotations"] = annotations;
    pod
}

/// How long anything may take to happen, on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(60);

/// Rounds until no pod is left; notes of all of them.
async fn until_all_ended(fake: &Fake, controller: &mut Controller) -> Vec<String> {
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
    // Who asks for devices by claims waits with the others, and is left to kube-scheduler in its turn.
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

/// More pods than the 160 GPUs of the cluster take at once, by far.
const NUM_MANY: usize = 400;

/// So many pods in gangs of one to eight, on 20 nodes.
fn many() -> World {
    let names: Vec<String> = (0..20).map(|number| format!("n{number:02}")).collect();
    let nodes: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 8)).collect();
    let mut world = world(&nodes);
    let (mut number, mut gang) = (0, 0);
    while number < NUM_MANY {
        let size = [1, 1, 2, 1, 4, 1, 8, 3][gang % 8].min(NUM_MANY - number);
        for rank in 0..size {
            let mut annotations = json!({ "pleach/estimate-s": (10 + gang * 37 % 900).to_string() });
            if size > 1 {
                annotations["pleach/gang"] = json!(format!("g{gang}"));
                annotations["pleach/gang-size"] = json!(size.to_string());
            }
            let gpus = [1, 2, 4, 1][gang % 4];
            world.add_pod(owned(with(pod(&format!("p{gang}-{rank}"), gpus), annotations)));
        }
        number += size;
        gang += 1;
    }
    world
}

/// Every pod ran once, where and when it was let go.
fn nothing_was_lost_or_doubled(world: &World, num: usize) {
    let ended: BTreeSet<&str> = world
        .pods
        .values()
        .filter(|pod| pod["status"]["phase"] == "Succeeded")
        .map(|pod| pod["metadata"]["uid"].as_str().unwrap())
        .collect();
    assert_eq!(ended.len(), num);
    let bound: BTreeSet<&str> = world.binds.iter().map(|(uid, _)| uid.as_str()).collect();
    assert!(bound.is_superset(&ended));
    let lifted: BTreeSet<&str> = world.lifted.iter().map(String::as_str).collect();
    assert_eq!(lifted.len(), world.lifted.len(), "a gate was lifted twice");
    for (uid, node) in &world.binds {
        let pod = world.pods.values().find(|pod| pod["metadata"]["uid"] == **uid);
        let Some(pod) = pod else { continue };
        assert_eq!(pod["spec"]["nodeSelector"]["kubernetes.io/hostname"], **node);
        let mark = pod["metadata"]["annotations"]["pleach/decided"].as_str().unwrap();
        assert!(mark.contains(&format!("\"seat\":\"{node}\"")), "{mark}");
    }
}

#[tokio::test]
async fn hundreds_of_pods_end_once_each_whatever_the_api_server_does_and_however_often_the_controller_is_killed()
 {
    let folder = tempfile::tempdir().unwrap();
    let mut world = many();
    world.fault_every = 41;
    let fake = Fake::start(world).await;
    // One of the faults is an answer that never comes.
    let settings = Settings {
        request_limit_s: 0.3,
        ..settings(&folder)
    };
    let kill = fake.world.lock().unwrap().kill.clone();
    let (mut num_kills, mut last) = (0, Vec::new());
    for life in 0.. {
        if life >= 90 {
            let lists = fake.cluster(&settings).lists().await;
            let seen =
                lists.map(|lists| pleach_kubernetes::observe::observe(&lists, &settings, now_s()).snapshot);
            panic!(
                "{} pods are left: {last:?} {seen:#?}",
                fake.world.lock().unwrap().num_left()
            );
        }
        let mut controller =
            Kubernetes::driver(settings.clone(), fake.cluster(&settings), "sjf", false).unwrap();
        {
            let mut world = fake.world.lock().unwrap();
            // Each life ends at another point: between lists, between list and patch, between patches of a gang.
            world.kill_at = Some(world.num_requests + 40 + life * 7 % 61);
        }
        let is_done = async {
            loop {
                last = controller.round(now_s()).await;
                if fake.world.lock().unwrap().num_left() == 0 {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = kill.notified() => num_kills += 1,
            () = is_done => break,
        }
    }
    let world = fake.world.lock().unwrap();
    assert!(num_kills > 10, "killed {num_kills} times");
    nothing_was_lost_or_doubled(&world, NUM_MANY);
}

#[tokio::test]
async fn pods_that_were_pinned_to_a_node_that_is_lost_are_made_anew_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 4), ("n2", 4)]);
    for rank in 0..2 {
        let annotations = json!({ "pleach/gang": "g", "pleach/gang-size": "2" });
        world.add_pod(owned(with(pod(&format!("w-{rank}"), 2), annotations)));
    }
    let fake = Fake::start(world).await;
    let settings = settings(&folder);
    let mut controller =
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap();
    {
        // The node is there for the list, and no more for the toy scheduler.
        let mut world = fake.world.lock().unwrap();
        for node in world.nodes.values_mut() {
            node["status"]["conditions"] =
                json!([{ "type": "x", "status": "False" }, { "type": "Ready", "status": "True" }]);
        }
    }
    let now_s = now_s();
    controller.round(now_s).await;
    let lost = {
        let mut world = fake.world.lock().unwrap();
        assert_eq!((world.lifted.len(), world.binds.len()), (2, 0));
        let pod = world.pods.values().next().unwrap();
        let lost = pod["spec"]["nodeSelector"]["kubernetes.io/hostname"]
            .as_str()
            .unwrap()
            .to_owned();
        for (name, node) in &mut world.nodes {
            let status = if *name == lost { "Unknown" } else { "True" };
            node["status"]["conditions"] = json!([{ "type": "Ready", "status": status }]);
        }
        lost
    };
    controller.round(now_s + 30).await;
    assert_eq!(fake.world.lock().unwrap().num_evicted, 0, "not yet");
    let notes = controller.round(now_s + 61).await;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("team/g") && note.contains("evicted")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with(&format!("team/g was let go to {lost}"))),
        "{notes:?}"
    );
    until_all_ended(&fake, &mut controller).await;
    let world = fake.world.lock().unwrap();
    assert_eq!(world.num_evicted, 2);
    assert!(
        world.binds.iter().all(|(_, node)| *node != lost),
        "{:?}",
        world.binds
    );
}

#[tokio::test]
async fn a_node_without_cpus_for_a_pod_is_not_chosen_for_it_again_and_why_not_tells_the_reason() {
    use pleach_daemon::policy::Loaded;
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 4), ("n2", 4)]);
    world.life_ms = 60_000;
    let mut cpus = with(pod("cpus", 0), json!({}));
    cpus["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "62" } });
    cpus["spec"]["schedulingGates"] = json!([]);
    cpus["spec"]["nodeName"] = json!("n1");
    cpus["status"] = json!({ "phase": "Running" });
    world.add_pod(cpus);
    // Bound, and not by the toy scheduler.
    world
        .ends
        .insert(uid("cpus"), (Instant::now() + LIMIT * 10).into());
    for name in ["a", "b"] {
        world.add_pod(pod(name, 2));
    }
    let fake = Fake::start(world).await;
    let settings = settings(&folder);
    let mut controller =
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap();
    let begin_s = now_s();
    let notes = controller.round(begin_s).await;
    let why = "put off: n1 has 2 CPUs, and 4 CPUs are asked for";
    assert!(notes[0].contains(why), "{notes:?}");
    assert_eq!(controller.status().num_starts, 0);
    // The reason stands there for whoever asks.
    let lists = fake.cluster(&settings).lists().await.unwrap();
    let observed = pleach_kubernetes::observe::observe(&lists, &settings, begin_s + 1);
    let (mut memory, _) = pleach_daemon::state::read_memory(&settings.state_dir);
    memory.observe(&observed.snapshot);
    let job = observed.snapshot.jobs[0].id;
    let mut fifo = Loaded::heuristic("fifo").unwrap();
    let rounds = settings.rounds.clone();
    let told = pleach_daemon::why_not::answer(&observed.snapshot, &memory, &mut fifo, &rounds, job).unwrap();
    assert!(told.contains(&format!("n1 refused it: {why}")), "{told}");
    // And the pods go elsewhere at once, not when the node has CPUs again.
    controller.round(begin_s + 2).await;
    let begin = Instant::now();
    while fake.world.lock().unwrap().binds.len() < 2 {
        assert!(begin.elapsed() < LIMIT, "{:?}", controller.status());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let world = fake.world.lock().unwrap();
    assert!(
        world.binds.iter().all(|(_, node)| node == "n2"),
        "{:?}",
        world.binds
    );
}

#[tokio::test]
async fn pods_that_are_deleted_while_they_are_let_go_cost_no_other_pod_anything() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 8)]);
    for name in ["a", "b", "c"] {
        world.add_pod(pod(name, 2));
    }
    world.vanish.insert("b".into());
    let fake = Fake::start(world).await;
    let settings = settings(&folder);
    let mut controller =
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap();
    let notes = until_all_ended(&fake, &mut controller).await;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("team/b") && note.contains("refused")),
        "{notes:?}"
    );
    nothing_was_lost_or_doubled(&fake.world.lock().unwrap(), 2);
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
            .mark(&pod, &mark.text(&pod.uid, &settings.marks))
            .await
            .unwrap();
    }
    assert_eq!((marks(), fake.world.lock().unwrap().lifted.len()), (3, 0));
    assert_eq!(hand_back(&cluster, &settings).await.unwrap(), (3, Vec::new()));
    assert_eq!((marks(), fake.world.lock().unwrap().lifted.len()), (0, 3));
    // Nobody takes them for a gang that has its place: whoever drives next leaves them to kube-scheduler.
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
async fn an_api_server_that_says_too_much_or_never_ends_fails_a_round_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world(&[("n1", 4)]);
    for number in 0..300 {
        world.add_pod(pod(&format!("p{number}"), 1));
    }
    // No page is short enough for it.
    let mut fat = pod("fat", 1);
    fat["spec"]["containers"][0]["env"] = json!([{ "name": "BIG", "value": "x".repeat(1 << 17) }]);
    world.add_pod(fat);
    let fake = Fake::start(world).await;
    let few = Settings {
        objects_max: 200,
        ..settings(&folder)
    };
    let small = Settings {
        answer_bytes_max: 65_536,
        page: 10_000,
        ..settings(&folder)
    };
    for (settings, word) in [(few, "more than 200"), (small, "list of pods")] {
        let mut controller =
            Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", false).unwrap();
        let notes = controller.round(now_s()).await;
        assert!(notes[0].contains(word), "{notes:?}");
        assert_eq!(controller.status().num_failed, 1);
    }
    assert_eq!(fake.world.lock().unwrap().num_writes, 0);
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
