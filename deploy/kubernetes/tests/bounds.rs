//! What bounds Jobs that wait: quotas of namespaces, classes of priority; and racks of nodes.

use crate::objects::{NOW_S, node, settings, uid};
use crate::suspended::{is_suspended, job, made, open};
use pleach_daemon::snapshot::Phase;
use pleach_kubernetes::observe::observe;
use serde_json::{Value, json};

/// A quota of the namespace of all, of GPUs.
fn quota(hard: u32, used: u32) -> Value {
    json!({ "metadata": { "name": "gpus", "namespace": "team", "uid": uid("gpus") },
        "spec": { "hard": { "requests.nvidia.com/gpu": hard.to_string() } },
        "status": { "hard": { "requests.nvidia.com/gpu": hard.to_string() },
            "used": { "requests.nvidia.com/gpu": used.to_string() } } })
}

#[tokio::test]
async fn a_start_that_a_quota_would_refuse_waits_for_that_reason_and_the_next_one_goes() {
    let jobs = [job("wide", 2, 4), job("small", 1, 4), job("other", 1, 4)];
    let mut driven = open(&["n1", "n2"], &jobs, |_| ()).await;
    driven.fake.world.lock().unwrap().quotas = vec![quota(10, 4)];
    let lists = driven.fake.cluster(&driven.settings).lists().await.unwrap();
    let observed = observe(&lists, &driven.settings, NOW_S);
    let Phase::Blocked { reason } = &observed.snapshot.jobs[0].phase else {
        panic!("{:?}", observed.snapshot.jobs[0])
    };
    let why = "waits for the quota gpus of its namespace: 6 of nvidia.com/gpu are left of 10 of nvidia.com/gpu, and it takes 8 \
               of nvidia.com/gpu";
    assert_eq!(reason, why);
    // Of two that fit alone one does beside the other, before its pods count.
    driven.controller.round(NOW_S).await;
    assert_eq!(
        [0, 1, 2].map(|number| is_suspended(&driven, number)),
        [true, false, true]
    );
    driven.controller.round(NOW_S + 2).await;
    assert!(is_suspended(&driven, 2));
    // Nor once its pod is there, which the quota does not show yet.
    let settings = driven.settings.clone();
    driven.fake.world.lock().unwrap().run_jobs(&settings);
    driven.fake.world.lock().unwrap().quotas = vec![quota(7, 0)];
    driven.controller.round(NOW_S + 3).await;
    assert!(is_suspended(&driven, 2));
    // What others give back is theirs.
    driven.fake.world.lock().unwrap().quotas = vec![quota(10, 0)];
    driven.controller.round(NOW_S + 4).await;
    assert!(!is_suspended(&driven, 2) && is_suspended(&driven, 0));
}

#[test]
fn a_quota_counts_the_pods_of_its_scopes() {
    let waits = |change: &dyn Fn(&mut Value), of_job: &dyn Fn(&mut Value)| {
        let mut job = job("fit", 2, 4);
        of_job(&mut job);
        let job = made(&job, &settings());
        let mut quota = quota(4, 0);
        change(&mut quota);
        let mut lists = crate::objects::lists(&[node("n1", 8)], &[], &[job]);
        lists.quotas = vec![std::sync::Arc::new(serde_json::from_value(quota).unwrap())];
        let observed = observe(&lists, &settings(), NOW_S);
        observed.snapshot.jobs[0].phase == Phase::Waiting
    };
    let class = |job: &mut Value| job["spec"]["template"]["spec"]["priorityClassName"] = json!("high");
    let hard = |name: &'static str, amount: &'static str| {
        move |quota: &mut Value| quota["status"]["hard"] = json!({ name: amount })
    };
    let scope = |expression: Value| {
        move |quota: &mut Value| quota["spec"]["scopeSelector"] = json!({ "matchExpressions": [expression] })
    };
    let of_high = json!({ "scopeName": "PriorityClass", "operator": "In", "values": ["high"] });
    for (expected, change, of_job) in [
        (
            false,
            &(|_: &mut Value| ()) as &dyn Fn(&mut Value),
            &(|_: &mut Value| ()) as &dyn Fn(&mut Value),
        ),
        (
            true,
            &|quota| quota["metadata"]["namespace"] = json!("others"),
            &|_| (),
        ),
        (false, &hard("pods", "1"), &|_| ()),
        (true, &hard("count/pods", "2"), &|_| ()),
        (false, &hard("cpu", "1500m"), &|_| ()),
        (true, &hard("requests.cpu", "2"), &|_| ()),
        (false, &hard("limits.nvidia.com/gpu", "7"), &|_| ()),
        (true, &hard("count/services", "0"), &|_| ()),
        (true, &scope(of_high.clone()), &|_| ()),
        (false, &scope(of_high), &class),
        (
            true,
            &|quota| quota["spec"]["scopes"] = json!(["BestEffort"]),
            &|_| (),
        ),
        (
            false,
            &|quota| quota["spec"]["scopes"] = json!(["NotTerminating"]),
            &|_| (),
        ),
        (
            true,
            &|quota| quota["spec"]["scopes"] = json!(["Terminating"]),
            &|_| (),
        ),
    ] {
        assert_eq!(waits(change, of_job), expected);
    }
}

#[tokio::test]
async fn classes_of_priority_go_first_and_the_policy_decides_within_one() {
    let of_class = |name: &str, class: Value| {
        let mut job = job(name, 1, 8);
        job["spec"]["template"]["spec"]["priorityClassName"] = class;
        job
    };
    let jobs = [
        of_class("low", json!("batch")),
        of_class("usual", Value::Null),
        of_class("first", json!("urgent")),
        of_class("second", json!("urgent")),
    ];
    let mut driven = open(&["n1", "n2", "n3"], &jobs, |_| ()).await;
    let class = |name: &str, value: i32, is_usual: bool| json!({ "metadata": { "name": name, "uid": uid(name) }, "value": value, "globalDefault": is_usual });
    let classes = vec![
        class("batch", -5, false),
        class("usual", 10, true),
        class("urgent", 1000, false),
    ];
    driven
        .fake
        .world
        .lock()
        .unwrap()
        .of_kueue
        .insert("priorityclasses".into(), classes);
    let lists = driven.fake.cluster(&driven.settings).lists().await.unwrap();
    let observed = observe(&lists, &driven.settings, NOW_S);
    let priorities: Vec<i32> = observed
        .snapshot
        .jobs
        .iter()
        .map(|job| job.terms.priority)
        .collect();
    assert_eq!(priorities, [-5, 10, 1000, 1000]);
    driven.controller.round(NOW_S).await;
    assert_eq!(
        [0, 1, 2, 3].map(|number| is_suspended(&driven, number)),
        [true, false, false, false]
    );
}

#[test]
fn nodes_of_a_rack_stand_together_and_a_gang_stays_in_one() {
    let labelled = |name: &str, rack: &str| {
        let mut node = node(name, 8);
        node["metadata"]["labels"]["network.topology.nvidia.com/leaf"] = json!(rack);
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!("a");
        node
    };
    let nodes = [
        labelled("n1", "s2"),
        labelled("n2", "s1"),
        labelled("n3", "s2"),
        labelled("n4", "s1"),
    ];
    let observed = observe(&crate::objects::lists(&nodes, &[], &[]), &settings(), NOW_S);
    let names: Vec<&str> = observed
        .snapshot
        .nodes
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(names, ["n2", "n4", "n1", "n3"]);
    let rounds = settings().rounds();
    let fleet = pleach_daemon::fleet::empty(&observed.snapshot, &rounds)
        .unwrap()
        .unwrap();
    let racks: Vec<u32> = fleet.cluster.nodes().iter().map(|node| node.rack.0).collect();
    assert_eq!(racks, [0, 0, 1, 1]);
    // One zone for all says nothing.
    let same = [labelled("n1", "s1"), labelled("n2", "s1")];
    let observed = observe(&crate::objects::lists(&same, &[], &[]), &settings(), NOW_S);
    assert!(observed.snapshot.site.racks.is_empty());
}
