//! The controller over an API server whose requests fail, whose nodes are lost and whose pods go, and killed again and again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::end_to_end::{LIMIT, now_s, settings, until_all_ended, with, world};
use crate::fake::{Fake, World, owned};
use crate::objects::{pod, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::Kubernetes;
use serde_json::json;

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
    // `why-not` gives the reason.
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
