//! Users who want more than their share: the attacks of a test of the controller, each on a world where it once worked.

use std::collections::BTreeSet;

use crate::driven::Driven;
use crate::fake::{Fake, World};
use crate::objects::{NOW_S, node, pod, time, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{Controller, Kubernetes};
use serde_json::{Value, json};

fn settings(folder: &tempfile::TempDir) -> Settings {
    Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        bind_wait_s: 0.5,
        namespaces: vec!["*".into()],
        ..Settings::default()
    }
}

async fn driven(world: World, policy: &str) -> Driven {
    Driven::new(Fake::still(world).await, policy, |settings| {
        settings.bind_wait_s = 0.5
    })
}

/// What an earlier release wrote, and believed of any user.
fn forged(seats: &Value) -> Value {
    let seat = seats[0][0].clone();
    json!(json!({ "at_s": NOW_S - 5, "seat": seat, "seats": seats, "by": "sjf" }).to_string())
}

fn of_namespace(mut pod: Value, namespace: &str) -> Value {
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

/// Four pods without our gate that no node takes, each with a mark for a node: 16 free GPUs, no pod started.
#[tokio::test]
async fn forged_marks_on_pods_that_nobody_can_bind_take_no_gpus() {
    let mut world = World::default();
    for number in 1..=4 {
        let name = format!("n{number}");
        world.add_node(node(&name, 4));
        let mut forger = of_namespace(pod(&format!("forged-{number}"), 4), "hostile");
        forger["spec"]["schedulingGates"] = json!([]);
        forger["spec"]["nodeSelector"] = json!({ "no": "node" });
        forger["metadata"]["annotations"] = json!({ "pleach/decided": forged(&json!([[name, 1]])) });
        world.add_pod(forger);
        world.add_pod(pod(&format!("honest-{number}"), 4));
    }
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, "fifo").await;
    controller.round(NOW_S).await;
    assert_eq!(
        controller.status().num_starts,
        4,
        "{}",
        controller.status().last_error
    );
    let world = fake.world.lock().unwrap();
    let lifted: BTreeSet<&String> = world.lifted.iter().collect();
    let honest: Vec<String> = (1..=4).map(|number| uid(&format!("honest-{number}"))).collect();
    assert_eq!(lifted, honest.iter().collect());
}

/// A mark of more seats than pods looked like a gang that was let go in part: its gate was lifted first of all.
#[tokio::test]
async fn a_users_own_mark_lifts_no_gate_ahead_of_older_ones() {
    let mut world = World::default();
    world.add_node(node("n4", 4));
    let mut young = of_namespace(pod("young", 4), "hostile");
    young["metadata"]["creationTimestamp"] = json!(time(NOW_S - 1));
    young["metadata"]["annotations"] = json!({ "pleach/decided": forged(&json!([["n4", 2]])) });
    world.add_pod(young);
    world.add_pod(pod("old", 4));
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, "fifo").await;
    controller.round(NOW_S).await;
    assert_eq!(fake.world.lock().unwrap().lifted, [uid("old")]);
}

/// 200 pods with annotations of 60 KB were 3 GB and 20 s a round: one that named a node for each of 131,072 pods, and others that
/// no program reads.
#[tokio::test]
async fn annotations_of_many_kilobytes_cost_a_round_nothing() {
    let mut world = World::default();
    world.add_node(node("n1", 4));
    for number in 0..200 {
        let mut pod = of_namespace(pod(&format!("big-{number}"), 1), "hostile");
        let seats: Vec<Value> = (0..4_000).map(|seat| json!([format!("n{seat}"), 32])).collect();
        pod["metadata"]["annotations"] =
            json!({ "pleach/decided": forged(&json!(seats)), "note": "x".repeat(60_000) });
        assert!(pod.to_string().len() > 100_000);
        world.add_pod(pod);
    }
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, "fifo").await;
    let cluster = fake.cluster(controller.system().settings());
    let kept: usize = cluster
        .pods()
        .await
        .unwrap()
        .iter()
        .map(|pod| {
            let annotations = pod.metadata.annotations.iter().flatten();
            annotations
                .filter(|(name, _)| *name != "pleach/decided")
                .map(|(name, text)| name.len() + text.len())
                .sum::<usize>()
        })
        .sum();
    assert_eq!(kept, 0);
    controller.round(NOW_S).await;
    let observed = controller
        .system()
        .view()
        .last(std::time::Duration::from_secs(600))
        .unwrap();
    // What is made of a pod is as large as the pod, whatever its annotation says.
    let size = |job: &pleach_daemon::snapshot::JobSeen| job.nodes.len() + job.num_nodes as usize;
    assert!(observed.snapshot.jobs.iter().all(|job| size(job) == 1));
    assert!(
        observed
            .jobs
            .values()
            .flat_map(|job| &job.pods)
            .all(|pod| pod.decided.is_none())
    );
    assert_eq!(controller.status().num_starts, 4);
}

/// No namespace named was every namespace.
#[tokio::test]
async fn nothing_is_driven_live_before_namespaces_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        namespaces: Vec::new(),
        ..settings(&folder)
    };
    let fake = Fake::still(World::default()).await;
    let begin = |is_shadow| Kubernetes::driver(settings.clone(), fake.cluster(&settings), "fifo", is_shadow);
    let said = begin(false).unwrap_err().to_string();
    assert!(said.contains("namespaces"), "{said}");
    assert!(begin(true).is_ok());
}

fn says(mut pod: Value, estimate_s: i64) -> Value {
    pod["metadata"]["annotations"]["pleach/estimate-s"] = json!(estimate_s.to_string());
    pod
}

/// One node of four GPUs; a user who says 1 s and takes an hour is first once, and behind an honest job of ten minutes ever
/// after.
#[tokio::test]
async fn who_says_one_second_and_runs_for_an_hour_is_first_once() {
    let mut world = World {
        now_s: Some(NOW_S),
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 4));
    world.add_pod(says(of_namespace(pod("liar-1", 4), "hostile"), 1));
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, "sjf").await;
    controller.round(NOW_S).await;
    fake.world.lock().unwrap().tick();
    {
        let mut world = fake.world.lock().unwrap();
        world.add_pod(says(of_namespace(pod("liar-2", 4), "hostile"), 1));
        world.add_pod(says(pod("honest", 4), 600));
    }
    // While it runs on it is its own witness.
    controller.round(NOW_S + 3600).await;
    let believed = |controller: &Controller, name: &str| {
        let view = controller.system().view();
        let observed = view.last(std::time::Duration::from_secs(600)).unwrap();
        let id = uid(name).parse().unwrap();
        let job = observed.snapshot.jobs.iter().find(|job| job.id == id).unwrap();
        job.limit_s
    };
    assert_eq!(believed(&controller, "liar-2"), Some(3600));
    assert_eq!(believed(&controller, "honest"), Some(600));
    // It has outlived its word: what is left of it is not a second.
    assert_eq!(believed(&controller, "liar-1"), None);
    fake.world.lock().unwrap().end("liar-1");
    controller.round(NOW_S + 3602).await;
    let lifted = |fake: &Fake| fake.world.lock().unwrap().lifted.clone();
    assert_eq!(lifted(&fake), [uid("liar-1"), uid("honest")]);
    {
        let observed = controller
            .system()
            .view()
            .last(std::time::Duration::from_secs(600))
            .unwrap();
        let remark = observed.jobs[&uid("liar-2").parse().unwrap()]
            .remark
            .clone()
            .unwrap();
        assert!(
            remark.contains("pleach/estimate-s of 1 s counts for more"),
            "{remark}"
        );
    }
    // Another controller with the same folder has not forgotten.
    let settings = controller.system().settings().clone();
    drop(controller);
    let mut controller = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "sjf", false).unwrap();
    controller.round(NOW_S + 3604).await;
    assert_eq!(believed(&controller, "liar-2"), Some(3600));
}

/// A job that is ended at its deadline takes no longer, whatever others of its namespace did.
#[tokio::test]
async fn a_deadline_is_believed_for_it_is_kept() {
    let mut world = World {
        now_s: Some(NOW_S),
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 4));
    world.add_pod(says(pod("long", 4), 10));
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, "sjf").await;
    controller.round(NOW_S).await;
    {
        let mut world = fake.world.lock().unwrap();
        world.tick();
        let mut bound = says(pod("bound", 4), 5);
        bound["spec"]["activeDeadlineSeconds"] = json!(60);
        world.add_pod(bound);
    }
    controller.round(NOW_S + 1000).await;
    let observed = controller
        .system()
        .view()
        .last(std::time::Duration::from_secs(600))
        .unwrap();
    let id = uid("bound").parse().unwrap();
    let job = observed.snapshot.jobs.iter().find(|job| job.id == id).unwrap();
    assert_eq!(job.limit_s, Some(60));
}
