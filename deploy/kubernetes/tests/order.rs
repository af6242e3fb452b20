//! The order under Kueue, against an API server in memory: what is written, and that nothing else is.

use crate::driven::Driven;
use crate::fake::{Fake, World};
use crate::objects::{NOW_S, job, node, pod, time, uid};
use pleach_daemon::Drive;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::{hand_back, take_back};
use serde_json::{Value, json};

/// A workload of a Job of one pod, in LocalQueue `q` of its namespace.
fn workload(name: &str, came_s: i64, gpus: u32, estimate_s: u32) -> Value {
    let template = json!({
        "metadata": { "annotations": { "pleach/estimate-s": estimate_s.to_string() } },
        "spec": { "containers": [{ "name": "main", "resources": {
            "limits": { "nvidia.com/gpu": gpus.to_string(), "cpu": "1" } } }] },
    });
    json!({
        "metadata": { "name": name, "namespace": "team", "uid": uid(name), "creationTimestamp": time(came_s),
            "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": format!("of-{name}"),
                "uid": uid(&format!("of-{name}")), "controller": true }] },
        "spec": { "queueName": "q", "priority": 0, "active": true,
            "podSets": [{ "name": "main", "count": 1, "template": template }] },
        "status": { "conditions": [{ "type": "QuotaReserved", "status": "False", "reason": "Pending",
            "message": "insufficient quota", "lastTransitionTime": time(came_s) }] },
    })
}

fn queue(name: &str, spec: Value) -> Value {
    json!({ "metadata": { "name": name }, "spec": spec })
}

/// One node of four GPUs, LocalQueue `q` to ClusterQueue `all`.
fn world(workloads: Vec<Value>) -> World {
    let mut world = World::default();
    world.add_node(node("n1", 4));
    world
        .of_kueue
        .insert("clusterqueues".into(), vec![queue("all", json!({}))]);
    world.of_kueue.insert(
        "localqueues".into(),
        vec![json!({ "metadata": { "name": "q", "namespace": "team" }, "spec": { "clusterQueue": "all" } })],
    );
    for workload in workloads {
        world.add_workload(workload);
    }
    world
}

/// Estimates of 500, 100, 300 and 200 s.
fn four() -> Vec<Value> {
    vec![
        workload("a", NOW_S - 40, 4, 500),
        workload("b", NOW_S - 30, 4, 100),
        workload("c", NOW_S - 20, 4, 300),
        workload("d", NOW_S - 10, 4, 200),
    ]
}

async fn driven(world: World, change: impl FnOnce(&mut Settings)) -> Driven {
    Driven::new(Fake::still(world).await, "sjf", |settings| {
        settings.drive = Drive::Order;
        change(settings);
    })
}

#[tokio::test]
async fn the_order_of_the_policy_is_written_once_and_nothing_else_is() {
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world(four()), |_| ()).await;
    let notes = controller.round(NOW_S).await;
    assert!(notes.is_empty(), "{notes:?}");
    {
        let world = fake.world.lock().unwrap();
        assert_eq!(world.line(), ["b", "d", "c", "a"]);
        assert_eq!(world.num_writes, 4);
        // The head of the line is written first.
        assert_eq!(world.ranked[0].0, "b");
    }
    // A line that is right stays, and of one that comes nothing but its own number is written.
    controller.round(NOW_S + 2).await;
    assert_eq!(fake.world.lock().unwrap().num_writes, 4);
    let late = workload("e", NOW_S + 3, 4, 250);
    fake.world.lock().unwrap().add_workload(late);
    controller.round(NOW_S + 4).await;
    let world = fake.world.lock().unwrap();
    assert_eq!(world.line(), ["b", "d", "e", "c", "a"]);
    assert_eq!(
        (world.num_writes, world.ranked.last().unwrap().0.as_str()),
        (5, "e")
    );
    assert_eq!(
        controller.status().num_failed,
        0,
        "{}",
        controller.status().last_error
    );
    assert_eq!(controller.status().num_waiting, 5);
}

#[tokio::test]
async fn a_round_writes_no_more_than_it_may_the_head_first_and_goes_on_after_a_conflict() {
    let mut world = world(four());
    world.told.insert("b".into());
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, |settings| settings.order_updates_max = 1).await;
    let notes = controller.round(NOW_S).await;
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(fake.world.lock().unwrap().line(), ["b", "a", "c", "d"]);
    for now_s in [2, 4, 6] {
        controller.round(NOW_S + now_s).await;
    }
    let world = fake.world.lock().unwrap();
    assert_eq!(
        (world.line(), world.ranked.len()),
        (["b", "d", "c", "a"].map(String::from).to_vec(), 4)
    );
}

#[tokio::test]
async fn hand_back_gives_each_workload_what_its_class_gives() {
    let mut workloads = four();
    workloads[0]["spec"]["priority"] = json!(70);
    workloads[0]["spec"]["priorityClassRef"] =
        json!({ "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "urgent" });
    let mut world = world(workloads);
    let class = json!({ "metadata": { "name": "urgent" }, "value": 70 });
    world
        .of_kueue
        .insert("workloadpriorityclasses".into(), vec![class]);
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, |_| ()).await;
    controller.round(NOW_S).await;
    // The longest job, of the higher class, stays before the others.
    assert_eq!(fake.world.lock().unwrap().line(), ["a", "b", "d", "c"]);
    let settings = controller.system().settings().clone();
    let (num, refused) = take_back(&fake.cluster(&settings), &settings).await.unwrap();
    let world = fake.world.lock().unwrap();
    let priority = |name: &str| world.workloads[name]["spec"]["priority"].as_i64().unwrap();
    assert_eq!(["a", "b", "c", "d"].map(priority), [70, 0, 0, 0], "{refused:?}");
    assert!(num >= 3 && refused.is_empty());
}

#[tokio::test]
async fn jobs_that_run_hold_their_gpus_and_are_the_same_jobs_as_when_they_waited() {
    let mut world = world(four());
    let reserved = json!([{ "type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
        "lastTransitionTime": time(NOW_S - 5) }]);
    world.workloads.get_mut("b").unwrap()["status"]["conditions"] = reserved;
    let mut running = pod("of-b-x7", 4);
    running["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": "of-b" });
    running["spec"]["schedulingGates"] = json!([]);
    running["spec"]["nodeName"] = json!("n1");
    running["status"] = json!({ "phase": "Running", "startTime": time(NOW_S - 5) });
    world.add_pod(running);
    world.jobs.push(job("of-b", 1, &json!({})));
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, |_| ()).await;
    controller.round(NOW_S).await;
    let status = controller.status();
    assert_eq!(
        (status.num_placed, status.num_waiting),
        (1, 3),
        "{}",
        status.last_error
    );
    assert_eq!(fake.world.lock().unwrap().line(), ["d", "c", "a"]);
    let observed = controller
        .system()
        .view()
        .last(std::time::Duration::from_secs(60))
        .unwrap();
    let name = &observed.jobs[&uid("b").parse().unwrap()].name;
    assert_eq!(name, "team/of-b");
}

/// Our numbers would make such a queue stop jobs, or put its namespaces before others.
#[tokio::test]
async fn queues_that_preempt_by_priority_or_that_are_not_driven_whole_are_left_to_kueue() {
    for (spec, others, word) in [
        (
            json!({ "preemption": { "withinClusterQueue": "LowerPriority" } }),
            Vec::new(),
            "withinClusterQueue",
        ),
        (
            json!({ "cohortName": "c" }),
            vec![queue(
                "other",
                json!({ "cohortName": "c", "preemption": { "reclaimWithinCohort": "LowerPriority" } }),
            )],
            "of a cohort",
        ),
        (json!({}), Vec::new(), "namespaces"),
    ] {
        let mut world = world(four());
        let queues = world.of_kueue.get_mut("clusterqueues").unwrap();
        queues[0]["spec"] = spec;
        queues.extend(others);
        if word == "namespaces" {
            let stranger =
                json!({ "metadata": { "name": "q", "namespace": "x" }, "spec": { "clusterQueue": "all" } });
            world.of_kueue.get_mut("localqueues").unwrap().push(stranger);
        }
        let Driven {
            fake,
            mut controller,
            folder: _folder,
            ..
        } = driven(world, |settings| {
            if word == "namespaces" {
                settings.namespaces = vec!["team".into()];
            }
        })
        .await;
        let notes = controller.round(NOW_S).await;
        assert!(notes.iter().any(|note| note.contains(word)), "{word}: {notes:?}");
        assert_eq!(fake.world.lock().unwrap().num_writes, 0, "{word}");
    }
}

/// What is left to Kueue keeps its place: jobs without GPUs, gangs of unlike pods, what fits nowhere.
#[tokio::test]
async fn workloads_that_the_policy_is_not_told_of_keep_their_places() {
    let mut workloads = four();
    let containers = "/spec/podSets/0/template/spec/containers/0/resources/limits";
    *workloads[0].pointer_mut(containers).unwrap() = json!({ "cpu": "1" });
    *workloads[2].pointer_mut(containers).unwrap() = json!({ "nvidia.com/gpu": "64" });
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world(workloads), |_| ()).await;
    controller.round(NOW_S).await;
    assert_eq!(fake.world.lock().unwrap().line(), ["a", "b", "c", "d"]);
    assert_eq!(controller.status().num_foreign, 1);
}

/// Pods held by a controller that drove by gates are reported, and touched by `hand-back` alone.
#[tokio::test]
async fn no_pod_is_touched() {
    let mut world = world(Vec::new());
    world.add_pod(pod("held", 1));
    let Driven {
        fake,
        mut controller,
        folder: _folder,
        ..
    } = driven(world, |_| ()).await;
    controller.round(NOW_S).await;
    assert_eq!(fake.world.lock().unwrap().num_writes, 0);
    let settings = controller.system().settings().clone();
    hand_back(&fake.cluster(&settings), &settings).await.unwrap();
    assert_eq!(fake.world.lock().unwrap().lifted.len(), 1);
}
