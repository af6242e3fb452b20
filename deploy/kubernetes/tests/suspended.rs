//! Jobs that wait suspended: which do, what the queue knows of them without pods, and that they start on the nodes that were
//! decided.

use crate::driven::Driven;
use crate::fake::{Fake, World, patch_of};
use crate::objects::{NOW_S, node, settings, time, uid};
use pleach_daemon::snapshot::Phase;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::hand_back;
use pleach_kubernetes::let_go::LetGo;
use pleach_kubernetes::observe::observe;
use pleach_kubernetes::webhook;
use serde_json::{Value, json};

/// A Job of `pods` pods with so many GPUs each, all at once.
pub fn job(name: &str, pods: u32, gpus: u32) -> Value {
    let resources = json!({ "requests": { "cpu": "1" }, "limits": { "nvidia.com/gpu": gpus.to_string() } });
    json!({
        "metadata": { "name": name, "namespace": "team", "uid": uid(name), "creationTimestamp": time(NOW_S - 100) },
        "spec": {
            "completionMode": "Indexed", "completions": pods, "parallelism": pods, "activeDeadlineSeconds": 500,
            "template": { "metadata": { "labels": { "app": "train" } }, "spec": {
                "containers": [{ "name": "main", "image": "train:1", "resources": resources }] } },
        },
    })
}

/// What the webhook makes of a Job that is created.
pub fn made(job: &Value, settings: &Settings) -> Value {
    let mut world = World::default();
    world.make_job(job.clone(), settings);
    world.jobs.remove(0)
}

#[test]
fn jobs_of_driven_gpus_are_suspended_and_those_of_others_are_left_alone() {
    let is_ours = |change: &dyn Fn(&mut Value), settings: &Settings| {
        let mut job = job("fit", 2, 4);
        change(&mut job);
        let made = made(&job, settings);
        let is_noted = made["metadata"]["annotations"]["pleach/suspended"] == "0";
        assert!(!is_noted || made["spec"]["suspend"] == true, "{made}");
        is_noted
    };
    let usual = settings();
    assert!(is_ours(&|_| (), &usual));
    assert!(is_ours(&|job| job["spec"]["suspend"] = json!(false), &usual));
    assert!(is_ours(
        &|job| job["metadata"]["annotations"] = json!({ "pleach/suspended": "5" }),
        &usual
    ));
    let owned = |kind: &str| json!([{ "apiVersion": "x/v1", "kind": kind, "name": "o", "uid": "u", "controller": true }]);
    assert!(is_ours(
        &|job| job["metadata"]["ownerReferences"] = owned("CronJob"),
        &usual
    ));
    type Change<'a> = &'a dyn Fn(&mut Value);
    let theirs: [(&str, Change<'_>); 8] = [
        ("its user's", &|job| job["spec"]["suspend"] = json!(true)),
        ("its user's, as ours", &|job| {
            job["spec"]["suspend"] = json!(true);
            job["metadata"]["annotations"] = json!({ "pleach/suspended": "0" });
        }),
        ("Kueue's", &|job| {
            job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "q" });
        }),
        ("a JobSet's", &|job| {
            job["metadata"]["ownerReferences"] = owned("JobSet");
        }),
        ("another program's", &|job| {
            job["spec"]["managedBy"] = json!("example.com/jobs");
        }),
        ("without GPUs", &|job| {
            job["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({});
        }),
        ("one that stays out", &|job| {
            job["metadata"]["labels"] = json!({ "pleach/drive": "false" });
        }),
        ("another scheduler's", &|job| {
            job["spec"]["template"]["spec"]["schedulerName"] = json!("volcano");
        }),
    ];
    for (what, change) in theirs {
        assert!(!is_ours(change, &usual), "{what}");
    }
    let off = Settings {
        suspend: false,
        ..settings()
    };
    assert!(!is_ours(&|_| (), &off));
    // A mark that a user writes is taken off, and an update changes nothing.
    let mut forged = job("fit", 2, 4);
    forged["metadata"]["annotations"] = json!({ "pleach/decided": "{}" });
    assert!(made(&forged, &usual)["metadata"]["annotations"]["pleach/decided"].is_null());
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "kind": { "group": "batch", "version": "v1", "kind": "Job" },
        "resource": { "group": "batch", "version": "v1", "resource": "jobs" }, "operation": "UPDATE",
        "userInfo": {}, "name": "fit", "namespace": "team", "object": job("fit", 1, 1) } });
    let answer = webhook::review(review.to_string().as_bytes(), &usual, true, &LetGo::default()).unwrap();
    assert_eq!(patch_of(&answer), Value::Null);
}

/// Nodes of 8 GPUs, and Jobs that the webhook has seen, one second after the other.
pub async fn open(nodes: &[&str], jobs: &[Value], change: impl FnOnce(&mut Settings)) -> Driven {
    let mut world = World {
        life_ms: 1_000_000,
        now_s: Some(NOW_S),
        ..World::default()
    };
    for name in nodes {
        world.add_node(node(name, 8));
    }
    let driven = Driven::new(Fake::still(world).await, "fifo", change);
    {
        let mut world = driven.fake.world.lock().unwrap();
        for (number, job) in (0..).zip(jobs) {
            let mut job = job.clone();
            job["metadata"]["creationTimestamp"] = json!(time(NOW_S - 100 + number));
            world.make_job(job, &driven.settings);
        }
        world.run_jobs(&driven.settings);
    }
    driven
}

/// A round, and a look of the Job controller and of kube-scheduler; what the operator hears.
async fn round(driven: &mut Driven, now_s: i64) -> Vec<String> {
    let settings = driven.settings.clone();
    driven.fake.world.lock().unwrap().now_s = Some(now_s);
    let notes = driven.controller.round(now_s).await;
    let mut world = driven.fake.world.lock().unwrap();
    world.run_jobs(&settings);
    world.tick();
    notes
}

pub fn is_suspended(driven: &Driven, number: usize) -> bool {
    driven.fake.world.lock().unwrap().jobs[number]["spec"]["suspend"] == true
}

/// Nodes that pods of a Job are bound to, in the order of their names.
fn nodes_of(driven: &Driven, name: &str) -> Vec<String> {
    let world = driven.fake.world.lock().unwrap();
    let own = world
        .pods
        .values()
        .filter(|pod| pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name);
    own.map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn a_job_has_no_pods_until_it_starts_and_then_they_go_where_it_was_decided() {
    let jobs = [job("first", 2, 8), job("second", 2, 8), job("small", 1, 8)];
    let mut driven = open(&["n1", "n2"], &jobs, |_| ()).await;
    assert!(driven.fake.world.lock().unwrap().pods.is_empty());
    round(&mut driven, NOW_S).await;
    assert_eq!(driven.controller.status().num_waiting, 3);
    // Let go, and its pods wait with the gate for the next round; no other job gets its nodes.
    assert_eq!(
        [0, 1, 2].map(|number| is_suspended(&driven, number)),
        [false, true, true]
    );
    assert_eq!(nodes_of(&driven, "first"), ["", ""]);
    round(&mut driven, NOW_S + 2).await;
    assert_eq!(nodes_of(&driven, "first"), ["n1", "n2"]);
    round(&mut driven, NOW_S + 4).await;
    assert_eq!(driven.controller.status().num_waiting, 2);
    assert!(is_suspended(&driven, 1) && is_suspended(&driven, 2));
    // One request for the Job, and two for each pod of it.
    {
        let world = driven.fake.world.lock().unwrap();
        let notes = &world.jobs[0]["metadata"]["annotations"];
        assert_eq!((notes["pleach/suspended"].is_null(), world.num_writes), (true, 5));
    }
    // The first one ends.
    {
        let mut world = driven.fake.world.lock().unwrap();
        world.jobs[0]["status"] = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
        world.pods.clear();
        world.jobs[0]["spec"]["suspend"] = json!(true);
    }
    // A controller that begins anew after the Job was let go finishes it.
    round(&mut driven, NOW_S + 6).await;
    let mut driven = driven.begun_again("fifo");
    round(&mut driven, NOW_S + 8).await;
    assert_eq!(nodes_of(&driven, "second"), ["n1", "n2"]);
    round(&mut driven, NOW_S + 10).await;
    assert!(is_suspended(&driven, 2) && nodes_of(&driven, "small").is_empty());
}

/// The mark of a Job stays on it, and is for the pods that it was written for: one that was evicted and made anew waits as all others.
#[tokio::test]
async fn a_mark_that_has_done_its_work_sends_no_pod_to_its_node_again() {
    let mut driven = open(&["n1"], &[job("first", 1, 8)], |_| ()).await;
    for after_s in [0, 2, 4] {
        round(&mut driven, NOW_S + after_s).await;
    }
    assert_eq!(nodes_of(&driven, "first"), ["n1"]);
    {
        let mut world = driven.fake.world.lock().unwrap();
        world.pods.clear();
        world.nodes.get_mut("n1").unwrap()["spec"]["unschedulable"] = json!(true);
        world.add_node(node("n2", 8));
    }
    for after_s in [6, 8] {
        round(&mut driven, NOW_S + after_s).await;
    }
    assert_eq!(nodes_of(&driven, "first"), ["n2"]);
}

/// Between two pods a Job has none: it is not taken for one whose pods were never made.
#[tokio::test]
async fn a_job_between_two_pods_is_not_suspended_for_the_want_of_them() {
    for is_begun_again in [false, true] {
        let mut driven = open(&["n1"], &[job("first", 1, 8)], |_| ()).await;
        for after_s in [0, 2, 4] {
            round(&mut driven, NOW_S + after_s).await;
        }
        assert_eq!(nodes_of(&driven, "first"), ["n1"]);
        {
            let mut world = driven.fake.world.lock().unwrap();
            world.pods.clear();
        }
        if is_begun_again {
            driven = driven.begun_again("fifo");
        }
        assert_eq!(driven.controller.round(NOW_S + 130).await, Vec::<String>::new());
        assert!(!is_suspended(&driven, 0));
        // The next one waits as all others.
        round(&mut driven, NOW_S + 132).await;
        round(&mut driven, NOW_S + 134).await;
        round(&mut driven, NOW_S + 136).await;
        assert_eq!(nodes_of(&driven, "first"), ["n1"]);
    }
}

#[tokio::test]
async fn a_job_that_gets_no_pods_is_suspended_again_and_its_nodes_are_free() {
    let jobs = [job("barred", 1, 8), job("next", 1, 8)];
    let mut driven = open(&["n1"], &jobs, |_| ()).await;
    driven.controller.round(NOW_S).await;
    assert!(!is_suspended(&driven, 0));
    // Something refuses its pods: the nodes are promised until the limit.
    driven.controller.round(NOW_S + 60).await;
    assert!(is_suspended(&driven, 1));
    let notes = driven.controller.round(NOW_S + 61).await;
    assert!(is_suspended(&driven, 0));
    assert!(
        notes
            .iter()
            .any(|note| note.contains("pods were not made within 60 s")),
        "{notes:?}"
    );
    driven.controller.round(NOW_S + 62).await;
    assert_eq!([0, 1].map(|number| is_suspended(&driven, number)), [true, false]);
}

#[tokio::test]
async fn gated_pods_of_a_job_are_given_back_and_the_job_waits_without_them() {
    // The webhook was not asked about Jobs: all have pods.
    let mut driven = open(&["n1"], &[], |_| ()).await;
    let settings = driven.settings.clone();
    {
        let mut world = driven.fake.world.lock().unwrap();
        let off = Settings {
            suspend: false,
            ..settings.clone()
        };
        for name in ["runs", "waits"] {
            world.make_job(job(name, 2, 4), &off);
        }
        let mut tasks = job("tasks", 2, 4);
        tasks["spec"]["completions"] = json!(10);
        world.make_job(tasks, &off);
        world.run_jobs(&settings);
        assert_eq!(world.pods.len(), 6);
    }
    for after_s in [0, 2, 4] {
        round(&mut driven, NOW_S + after_s).await;
    }
    assert_eq!(nodes_of(&driven, "runs"), ["n1", "n1"]);
    assert_eq!(nodes_of(&driven, "waits"), ["", ""]);
    round(&mut driven, NOW_S + 12).await;
    // Tasks are jobs of their own: some may run while others wait.
    assert_eq!(
        [0, 1, 2].map(|number| is_suspended(&driven, number)),
        [false, true, false]
    );
    assert!(nodes_of(&driven, "waits").is_empty());
    round(&mut driven, NOW_S + 14).await;
    assert_eq!(driven.controller.status().num_waiting, 3);
}

#[tokio::test]
async fn tasks_are_one_job_until_they_have_pods_and_what_is_handed_back_goes_free() {
    let mut tasks = job("tasks", 3, 4);
    tasks["spec"]["completions"] = json!(9);
    let mut mine = job("mine", 1, 1);
    mine["spec"]["suspend"] = json!(true);
    let jobs = [tasks, mine, job("wide", 1, 8), job("gang", 2, 4)];
    let mut driven = open(&["n1"], &jobs, |_| ()).await;
    round(&mut driven, NOW_S).await;
    assert_eq!(driven.controller.status().num_waiting, 3);
    assert!(!is_suspended(&driven, 0));
    for after_s in [2, 4] {
        round(&mut driven, NOW_S + after_s).await;
    }
    assert_eq!(nodes_of(&driven, "tasks"), ["n1", "n1", ""]);
    assert!(is_suspended(&driven, 1), "its user's");
    let cluster = driven.fake.cluster(&driven.settings);
    let (num, refused) = hand_back(&cluster, &driven.settings).await.unwrap();
    assert_eq!((num, refused.len()), (3, 0), "two Jobs and a task: {refused:?}");
    assert_eq!(
        [1, 2, 3].map(|number| is_suspended(&driven, number)),
        [true, false, false]
    );
}

/// The Job controller makes some ten pods a second: of thousands that are let go at once most would be suspended again before.
#[tokio::test]
async fn no_more_jobs_are_let_go_than_the_job_controller_comes_to() {
    let names: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
    let nodes: Vec<&str> = names.iter().map(String::as_str).collect();
    let jobs: Vec<Value> = (0..230)
        .map(|number| job(&format!("j{number:03}"), 1, 1))
        .collect();
    let mut driven = open(&nodes, &jobs, |_| ()).await;
    let num_held = |driven: &Driven| (0..230).filter(|number| is_suspended(driven, *number)).count();
    let notes = driven.controller.round(NOW_S).await;
    assert_eq!(num_held(&driven), 30, "{notes:?}");
    let of_all = notes
        .iter()
        .filter(|note| note.contains("makes the pods of others first"));
    assert_eq!(of_all.count(), 21, "twenty by name, and how many more");
    // No pod is there yet.
    driven.controller.round(NOW_S + 2).await;
    assert_eq!(num_held(&driven), 30);
    round(&mut driven, NOW_S + 4).await;
    round(&mut driven, NOW_S + 6).await;
    assert_eq!(num_held(&driven), 0);
}

#[tokio::test]
async fn what_the_policy_and_users_see_is_the_template() {
    let driven = open(&["n1", "n2"], &[job("fit", 2, 4)], |_| ()).await;
    let lists = driven.fake.cluster(&driven.settings).lists().await.unwrap();
    let observed = observe(&lists, &settings(), NOW_S);
    let [seen] = &observed.snapshot.jobs[..] else {
        panic!("{:?}", observed.snapshot.jobs)
    };
    assert_eq!(
        (&seen.phase, seen.num_nodes, seen.gpus_per_node),
        (&Phase::Waiting, 2, 4)
    );
    assert_eq!(
        (seen.limit_s, seen.submit_s, seen.num_cpus),
        (Some(500), NOW_S - 100, 2)
    );
    let pods = &observed.jobs[&seen.id];
    assert_eq!((pods.is_made, pods.name.as_str()), (false, "team/fit"));
    // Its deadline does not run.
    assert_eq!(pods.remark, None);
}

/// A JobSet with a launcher, and a training job; each of two pods of 4 GPUs.
fn others() -> Vec<(&'static str, &'static str, Value)> {
    let template = |gpus: u32| {
        let resources = json!({ "limits": { "nvidia.com/gpu": gpus.to_string() } });
        json!({ "spec": { "containers": [{ "name": "main", "image": "x", "resources": resources }] } })
    };
    let launcher = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
    let part = |name: &str, replicas: u32, template: &Value| {
        json!({ "name": name, "replicas": replicas,
            "template": { "spec": { "parallelism": 1, "completions": 1, "template": template } } })
    };
    let meta = |name: &str| {
        json!({ "name": name, "namespace": "team", "uid": uid(name), "resourceVersion": "1",
            "creationTimestamp": time(NOW_S - 100) })
    };
    let set = json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta("set"), "spec": {
        "replicatedJobs": [part("launch", 1, &launcher), part("train", 2, &template(4))] } });
    let training = json!({ "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta("torch"), "spec": {
        "pytorchReplicaSpecs": { "Master": { "template": template(4) }, "Worker": { "replicas": 1, "template": template(4) } } } });
    vec![
        ("jobset.x-k8s.io", "jobsets", set),
        ("kubeflow.org", "pytorchjobs", training),
    ]
}

/// An initializer without GPUs may take hours: a JobSet that was let go for its trainers would count as one that got no pods.
#[test]
fn a_job_set_whose_jobs_depend_on_each_other_waits_with_gates() {
    let (group, plural, set) = others().remove(0);
    let world = World::default();
    let mut in_parts = set.clone();
    in_parts["spec"]["replicatedJobs"][1]["dependsOn"] = json!([{ "name": "launch", "status": "Complete" }]);
    for (mut object, is_held) in [(set, true), (in_parts, false)] {
        world.admit(&mut object, group, plural, &settings());
        assert_eq!(object["spec"]["suspend"] == true, is_held, "{object}");
    }
}

#[tokio::test]
async fn job_sets_and_training_jobs_wait_as_one_gang_and_are_let_go_as_a_whole() {
    let mut driven = open(&["n1"], &[], |_| ()).await;
    {
        let mut world = driven.fake.world.lock().unwrap();
        for (group, plural, mut object) in others() {
            world.admit(&mut object, group, plural, &driven.settings);
            world.others.insert(plural.into(), vec![object]);
        }
    }
    let is_held = |driven: &Driven, plural: &str, path: &str| {
        let world = driven.fake.world.lock().unwrap();
        let object = &world.others[plural][0];
        let is_noted = object["metadata"]["annotations"]["pleach/suspended"].is_string();
        let is_suspended = object.pointer(path) == Some(&json!(true));
        assert_eq!(is_noted, is_suspended, "{object}");
        is_suspended
    };
    let all = [
        ("jobsets", "/spec/suspend"),
        ("pytorchjobs", "/spec/runPolicy/suspend"),
    ];
    assert_eq!(
        all.map(|(plural, path)| is_held(&driven, plural, path)),
        [true, true]
    );
    let lists = driven.fake.cluster(&driven.settings).lists().await.unwrap();
    let observed = observe(&lists, &driven.settings, NOW_S);
    let mut seen: Vec<(&str, u32, u32)> = observed
        .snapshot
        .jobs
        .iter()
        .map(|job| {
            (
                observed.jobs[&job.id].name.as_str(),
                job.num_nodes,
                job.gpus_per_node,
            )
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [("team/set", 2, 4), ("team/torch", 2, 4)]);
    // One node of 8 has room for one of them.
    driven.controller.round(NOW_S).await;
    assert_eq!(
        all.map(|(plural, path)| is_held(&driven, plural, path)),
        [false, true]
    );
    driven.controller.round(NOW_S + 2).await;
    assert!(is_held(&driven, "pytorchjobs", "/spec/runPolicy/suspend"));
}
