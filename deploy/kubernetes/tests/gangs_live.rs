//! Gangs that lose a pod or have no place, on an API server in memory with a scheduler and Job controllers behind it.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use crate::driven::Driven;
use crate::fake::{Fake, World, owned};
use crate::gangs::gang;
use crate::objects::{NOW_S, job, node, pod, time};
use serde_json::json;

/// A world at `NOW_S` where nothing ends of itself.
fn world(nodes: &[&str]) -> World {
    let mut world = World {
        life_ms: 1_000_000,
        now_s: Some(NOW_S),
        ..World::default()
    };
    nodes.iter().for_each(|name| world.add_node(node(name, 8)));
    world
}

struct Shop(Driven);

impl Deref for Shop {
    type Target = Driven;

    fn deref(&self) -> &Driven {
        &self.0
    }
}

impl DerefMut for Shop {
    fn deref_mut(&mut self) -> &mut Driven {
        &mut self.0
    }
}

impl Shop {
    async fn open(world: World) -> Shop {
        Shop(Driven::new(Fake::start(world).await, "fifo", |_| ()))
    }

    /// A round at `NOW_S + after_s`, and time for the toy scheduler until what is asked for holds.
    async fn round(&mut self, after_s: i64, is_so: impl Fn(&World) -> bool) -> Vec<String> {
        self.fake.world.lock().unwrap().now_s = Some(NOW_S + after_s);
        let notes = self.controller.round(NOW_S + after_s).await;
        let begin = Instant::now();
        while !is_so(&self.fake.world.lock().unwrap()) {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "after {after_s} s: {notes:?}"
            );
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        notes
    }
}

#[tokio::test]
async fn two_pods_of_five_start_on_a_node_each() {
    let mut world = world(&["n1", "n2"]);
    gang(2, 5).into_iter().for_each(|pod| world.add_pod(pod));
    let mut shop = Shop::open(world).await;
    shop.round(0, |world| world.binds.len() == 2).await;
    let world = shop.fake.world.lock().unwrap();
    let mut nodes = ["w-0", "w-1"].map(|pod| world.node_of(pod).unwrap());
    nodes.sort_unstable();
    assert_eq!(nodes, ["n1", "n2"]);
}

#[tokio::test]
async fn four_pods_of_four_start_on_four_half_free_nodes() {
    let names = ["n1", "n2", "n3", "n4"];
    let mut world = world(&names);
    for name in names {
        let mut half = pod(&format!("half-{name}"), 4);
        half["spec"]["schedulingGates"] = json!([]);
        half["spec"]["nodeName"] = json!(name);
        half["status"] = json!({ "phase": "Running" });
        world.runs(&half, name);
        world.add_pod(half);
    }
    gang(4, 4).into_iter().for_each(|pod| world.add_pod(pod));
    let mut shop = Shop::open(world).await;
    let num_bound = |world: &World| {
        (0..4)
            .filter(|rank| world.node_of(&format!("w-{rank}")).is_some())
            .count()
    };
    shop.round(0, |world| num_bound(world) == 4).await;
    let world = shop.fake.world.lock().unwrap();
    let mut nodes: Vec<&str> = (0..4)
        .map(|rank| world.node_of(&format!("w-{rank}")).unwrap())
        .collect();
    nodes.sort_unstable();
    assert_eq!(nodes, names);
}

#[tokio::test]
async fn gangs_without_a_place_are_left_to_kube_scheduler_at_once_and_counted() {
    let mut world = world(&["n1", "n2"]);
    gang(3, 5).into_iter().for_each(|pod| world.add_pod(pod));
    let mut shop = Shop::open(world).await;
    let notes = shop.round(0, |world| world.binds.len() == 2).await;
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("team/g is left to kube-scheduler: it has 3 pods of 5 GPUs")),
        "{notes:?}"
    );
    {
        let world = shop.fake.world.lock().unwrap();
        for pod in world.pods.values() {
            let left = pod["metadata"]["annotations"]["pleach/left"].as_str().unwrap();
            assert!(left.contains("the nodes that they may have hold 2"), "{left}");
        }
    }
    let status = shop.controller.status();
    assert_eq!((status.num_foreign, status.num_waiting), (1, 0));
}

#[tokio::test]
async fn a_gang_that_loses_a_pod_gets_it_back_on_its_node_and_nothing_of_it_is_evicted() {
    let mut world = world(&["n1", "n2"]);
    gang(2, 8).into_iter().for_each(|pod| world.add_pod(pod));
    let mut shop = Shop::open(world).await;
    shop.round(0, |world| world.binds.len() == 2).await;
    let node = {
        let mut world = shop.fake.world.lock().unwrap();
        // It came first, and is not of the gang.
        world.add_pod(pod("single", 8));
        world.now_s = Some(NOW_S + 20);
        let node = world.node_of("w-1").unwrap().to_owned();
        world.fail("w-1");
        node
    };
    shop.round(20, |world| world.node_of("w-1") == Some(node.as_str()))
        .await;
    for after_s in [22, 90, 190, 300] {
        let notes = shop.round(after_s, |_| true).await;
        assert!(!notes.iter().any(|note| note.contains("evicted")), "{notes:?}");
    }
    let mut world = shop.fake.world.lock().unwrap();
    assert_eq!((world.num_evicted, world.node_of("single")), (0, None));
    world.life_ms = 0;
}

#[tokio::test]
async fn a_pod_that_comes_back_too_late_goes_where_kube_scheduler_finds_room_and_the_others_run_on() {
    let mut world = world(&["n1", "n2", "n3"]);
    gang(2, 8).into_iter().for_each(|pod| world.add_pod(pod));
    let mut shop = Shop::open(world).await;
    shop.round(0, |world| world.binds.len() == 2).await;
    let late = {
        let mut world = shop.fake.world.lock().unwrap();
        for name in ["one", "two"] {
            world.add_pod(owned(pod(name, 8)));
        }
        world.fail("w-1");
        // Its Job takes its time.
        let key = world
            .pods
            .keys()
            .find(|(_, name)| name.starts_with("w-1x"))
            .unwrap()
            .clone();
        world.pods.remove(&key).unwrap()
    };
    // One of the two gets the third node, and the other one the place that was kept, once it is given up.
    shop.round(10, |world| world.binds.len() == 3).await;
    shop.round(131, |world| world.binds.len() == 4).await;
    {
        let mut world = shop.fake.world.lock().unwrap();
        let mut late = late;
        late["metadata"]["creationTimestamp"] = json!(time(NOW_S + 140));
        world.add_pod(late);
    }
    // It waits for its turn, which comes once a node is free.
    let notes = shop.round(140, |_| true).await;
    assert!(
        notes.iter().any(|note| note.contains("waits for its turn")
            && note.contains("made anew after their places were given")),
        "{notes:?}"
    );
    {
        let mut world = shop.fake.world.lock().unwrap();
        assert_eq!(world.lifted.len(), 4);
        world.end("one");
    }
    shop.round(145, |world| world.lifted.len() == 5 && world.binds.len() == 5)
        .await;
    for after_s in [150, 220, 400] {
        shop.round(after_s, |_| true).await;
    }
    assert_eq!(shop.fake.world.lock().unwrap().num_evicted, 0);
    assert_eq!(
        shop.controller.status().num_failed,
        0,
        "{}",
        shop.controller.status().last_error
    );
}

/// A Job that has ended well stays listed until it is deleted.
#[tokio::test]
async fn jobs_that_ended_well_are_not_listed_again_each_round_and_one_that_goes_on_is_asked_for() {
    let mut world = world(&["n1"]);
    let done = |number: u32| {
        let mut job = job(&format!("old-{number}"), 1, &json!({}));
        job["status"] = json!({ "succeeded": 1 });
        job
    };
    world.jobs = (0..500).map(done).collect();
    // Four tasks, two at once, of which one is done: its pods are jobs of their own.
    let mut tasks = job("tasks", 2, &json!({}));
    tasks["spec"]["completions"] = json!(4);
    tasks["status"] = json!({ "succeeded": 1 });
    world.jobs.push(tasks);
    world.jobs.push(job("new", 2, &json!({})));
    for (name, of) in [("t-1", "tasks"), ("t-2", "tasks"), ("w-0", "new"), ("w-1", "new")] {
        let mut pod = pod(name, 1);
        pod["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": of });
        world.add_pod(pod);
    }
    let mut shop = Shop::open(world).await;
    shop.round(0, |world| world.lifted.len() == 4).await;
    let world = shop.fake.world.lock().unwrap();
    assert_eq!((world.num_job_lists, world.num_jobs_listed), (1, 1));
    assert_eq!(shop.controller.status().num_starts, 3);
}

/// A pod is evicted after it was read and before it is marked: the others are not let go without it, and have no marks that say so.
#[tokio::test]
async fn a_gang_that_loses_a_pod_while_it_is_marked_is_not_begun_without_it() {
    let mut world = world(&["n1", "n2"]);
    let pods = gang(3, 4);
    pods.iter().for_each(|pod| world.add_pod(pod.clone()));
    world.vanish.insert("w-2".into());
    let mut shop = Shop::open(world).await;
    shop.round(0, |_| true).await;
    {
        let mut world = shop.fake.world.lock().unwrap();
        let decided = |pod: &serde_json::Value| pod["metadata"]["annotations"]["pleach/decided"].is_string();
        assert_eq!((world.pods.len(), world.pods.values().any(decided)), (2, false));
        let mut anew = pods[2].clone();
        anew["metadata"]["name"] = json!("w-2-again");
        world.add_pod(anew);
    }
    shop.round(2, |world| world.lifted.len() == 3).await;
}
