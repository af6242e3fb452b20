//! Pods that the tables cannot express wait for their turn: there is no way to the front of the queue.

use crate::fake::World;
use crate::leases::{Site, world};
use crate::objects::{NOW_S, job, lists, node, pod, settings, time, uid};
use pleach_daemon::snapshot::Phase;
use pleach_kubernetes::observe::observe;
use serde_json::{Value, json};

/// Six jobs wait for the one node, each for all of it, and then a pod comes.
fn full() -> World {
    let mut world = world(&[("n1", 8)]);
    let mut busy = pod("busy", 8);
    busy["spec"]["schedulingGates"] = json!([]);
    busy["spec"]["nodeName"] = json!("n1");
    busy["status"]["phase"] = json!("Running");
    world.runs(&busy, "n1");
    world.add_pod(busy);
    for number in 1..=6 {
        world.add_pod(pod(&format!("old-{number}"), 8));
    }
    world
}

/// Pods of which the table knows nothing, made after all others.
fn late(name: &str, gpus: u32, change: &dyn Fn(&mut Value)) -> Value {
    let mut pod = pod(name, gpus);
    pod["metadata"]["creationTimestamp"] = json!(time(NOW_S));
    change(&mut pod);
    pod
}

fn required(term: Value) -> Value {
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": term })
}

/// Every way that was found to the front, by its name.
fn ways() -> Vec<(&'static str, Vec<Value>)> {
    let one = |change: &dyn Fn(&mut Value)| vec![late("new", 8, change)];
    let gang = |pod: &mut Value| {
        pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "2" });
    };
    vec![
        ("nothing", one(&|_| ())),
        (
            "a vacuous hard spread",
            one(&|pod| {
                pod["spec"]["topologySpreadConstraints"] = json!([{ "maxSkew": 9, "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {} }]);
            }),
        ),
        (
            "an anti-affinity to nobody",
            one(&|pod| {
                let nobody =
                    json!([{ "topologyKey": "zone", "labelSelector": { "matchLabels": { "a": "b" } } }]);
                pod["spec"]["affinity"] = json!({ "podAntiAffinity": required(nobody) });
            }),
        ),
        (
            "NotIn",
            one(&|pod| {
                let term = json!({ "nodeSelectorTerms": [{ "matchExpressions": [
                    { "key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n8"] }] }] });
                pod["spec"]["affinity"] = json!({ "nodeAffinity": required(term) });
            }),
        ),
        (
            "a claim of devices",
            one(&|pod| pod["spec"]["resourceClaims"] = json!([{ "name": "nic" }])),
        ),
        (
            "a second GPU resource",
            one(&|pod| {
                pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.10gb"] = json!("1");
            }),
        ),
        (
            "a node by name",
            one(&|pod| pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": "n1" })),
        ),
        (
            "a gang of two unequal pods",
            vec![late("new-a", 5, &gang), late("new-b", 3, &gang)],
        ),
        (
            "a gang of which no two pods may run on the same nodes",
            vec![
                late("new-a", 4, &gang),
                late("new-b", 4, &|pod| {
                    gang(pod);
                    pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": "n1" });
                }),
            ],
        ),
        (
            "a gang that no nodes hold",
            vec![late("new-a", 8, &gang), late("new-b", 8, &gang)],
        ),
        (
            "one GPU more than there are",
            one(&|pod| pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("9")),
        ),
    ]
}

#[tokio::test]
async fn whatever_a_pod_asks_for_it_is_not_before_those_that_came_before_it() {
    for (way, pods) in ways() {
        let mut site = Site::new(full(), "fifo", |settings| settings.rounds.preemption = false).await;
        let names: Vec<String> = pods
            .iter()
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        pods.into_iter().for_each(|pod| site.add(pod));
        site.round(2).await;
        assert_eq!(site.lifted(), [""; 0], "{way}: the node is full");
        site.end("busy");
        for number in 1..=6 {
            site.round(2).await;
            site.tick();
            let expected: Vec<String> = (1..=number).map(|number| uid(&format!("old-{number}"))).collect();
            assert_eq!(site.lifted(), expected, "{way}");
            site.end(&format!("old-{number}"));
        }
        // And then it goes, within two rounds.
        let notes = [site.round(2).await, site.round(2).await];
        let lifted = site.lifted();
        let went: Vec<&String> = lifted[6..].iter().collect();
        let all: Vec<String> = names.iter().map(|name| uid(name)).collect();
        assert_eq!(went, all.iter().collect::<Vec<_>>(), "{way}: {notes:?}");
    }
}

#[tokio::test]
async fn a_held_pod_whose_user_patches_its_selector_waits_on() {
    let mut site = Site::new(full(), "fifo", |settings| settings.rounds.preemption = false).await;
    site.round(2).await;
    let key = ("team".to_owned(), "old-6".to_owned());
    let patch = json!({ "metadata": {}, "spec": { "nodeSelector": { "kubernetes.io/hostname": "n1" } } });
    site.fake.world.lock().unwrap().patch(&key, &patch).unwrap();
    site.round(2).await;
    assert_eq!(site.lifted(), [""; 0]);
    site.end("busy");
    site.round(2).await;
    assert_eq!(site.lifted(), [uid("old-1")]);
}

#[tokio::test]
async fn what_waits_for_its_turn_is_said_and_is_left_with_its_reason() {
    let mut site = Site::new(full(), "fifo", |settings| settings.rounds.preemption = false).await;
    site.add(late("new", 8, &|pod| {
        pod["spec"]["resourceClaims"] = json!([{ "name": "nic" }]);
    }));
    let notes = site.round(2).await;
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("team/new waits for its turn") && note.contains("DRA")),
        "{notes:?}"
    );
    for name in ["busy", "old-1", "old-2", "old-3", "old-4", "old-5", "old-6"] {
        site.end(name);
    }
    site.round(2).await;
    let world = site.fake.world.lock().unwrap();
    let pod = &world.pods[&("team".to_owned(), "new".to_owned())];
    let left = pod["metadata"]["annotations"]["pleach/left"].as_str().unwrap();
    assert!(left.contains("DRA"), "{left}");
    assert!(
        pod["spec"]["nodeSelector"].is_null(),
        "its node is kube-scheduler's to choose"
    );
}

/// A third pod with the label of a gang of two that runs.
#[test]
fn a_pod_too_many_of_a_running_gang_waits_like_others() {
    let mut pods: Vec<Value> = (0..3)
        .map(|rank| {
            let mut pod = pod(&format!("w-{rank}"), 2);
            pod["metadata"]["labels"] = json!({ "pleach/gang": "g" });
            pod["metadata"]["annotations"] = json!({ "pleach/gang-size": "2" });
            pod
        })
        .collect();
    for pod in &mut pods[..2] {
        *pod = crate::objects::let_go(pod, "n1", &[("n1", 2)]);
        pod["spec"]["nodeName"] = json!("n1");
        pod["status"] = json!({ "phase": "Running", "startTime": time(NOW_S - 4) });
    }
    let observed = observe(&lists(&[node("n1", 8)], &pods, &[]), &settings(), NOW_S);
    let waits = &observed.snapshot.jobs[0];
    assert_eq!(waits.phase, Phase::Waiting);
    assert_eq!((waits.num_nodes, waits.gpus_per_node), (1, 2));
    assert_eq!(observed.snapshot.nodes[0].num_gpus_used, 4, "the two run on");
}

#[test]
fn a_gang_that_is_not_whole_yet_is_waited_for_whatever_it_asks() {
    let gang = |name: &str, gpus| {
        late(name, gpus, &|pod| {
            pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "3" });
        })
    };
    let pods = [gang("a", 4), gang("b", 2)];
    let observed = observe(&lists(&[node("n1", 8)], &pods, &[]), &settings(), NOW_S);
    let Phase::Blocked { reason } = &observed.snapshot.jobs[0].phase else {
        panic!("{:?}", observed.snapshot.jobs)
    };
    assert!(reason.contains("2 of 3"), "{reason}");
}

fn tainted(name: &str, key: &str) -> Value {
    let mut node = node(name, 8);
    node["spec"]["taints"] = json!([{ "key": key, "value": "team-a", "effect": "NoSchedule" }]);
    node
}

fn tolerant(name: &str, key: &str) -> Value {
    let mut pod = pod(name, 8);
    pod["spec"]["tolerations"] = json!([{ "key": key, "operator": "Exists" }]);
    pod
}

/// Two nodes of a pool of its own, one for all, and one that is being repaired.
#[tokio::test]
async fn a_taint_keeps_those_away_that_do_not_tolerate_it_and_no_others() {
    let mut world = world(&[("n3", 8)]);
    for name in ["n1", "n2"] {
        world.add_node(tainted(name, "dedicated"));
    }
    world.add_node(tainted("n4", "repair"));
    for name in ["own-1", "own-2"] {
        world.add_pod(tolerant(name, "dedicated"));
    }
    for name in ["plain-1", "plain-2"] {
        world.add_pod(pod(name, 8));
    }
    let mut site = Site::new(world, "fifo", |settings| settings.rounds.preemption = false).await;
    for _ in 0..3 {
        site.round(2).await;
        site.tick();
    }
    let node_of = |name: &str| site.node_of(name).unwrap_or_default();
    let mut plain = [node_of("plain-1"), node_of("plain-2")];
    plain.sort();
    assert_eq!(
        plain,
        ["".to_owned(), "n3".to_owned()],
        "one waits for the one node without taints"
    );
    for name in ["own-1", "own-2"] {
        assert!(
            ["n1", "n2"].contains(&node_of(name).as_str()),
            "{name}: {}",
            node_of(name)
        );
    }
}

#[test]
fn an_index_of_a_job_is_shown_on_the_nodes_of_its_selector() {
    let mut racked = node("n2", 8);
    racked["metadata"]["labels"]["rack"] = json!("r1");
    let mut one = pod("p", 2);
    one["spec"]["nodeSelector"] = json!({ "rack": "r1" });
    let observed = observe(
        &lists(
            &[node("n1", 8), racked.clone()],
            &[one.clone()],
            &[job("j", 1, &json!({}))],
        ),
        &settings(),
        NOW_S,
    );
    let (seen, site) = (&observed.snapshot.jobs[0], &observed.snapshot.site);
    assert_eq!(seen.phase, Phase::Waiting);
    let rule = &site.rules[seen.terms.rules[0] as usize];
    assert_eq!(rule.closed, "n1");
    assert!(rule.why.contains("node selector"), "{}", rule.why);
    // More pods than the nodes of its selector hold.
    let pods: Vec<Value> = (0..2)
        .map(|rank| {
            let mut pod = one.clone();
            pod["metadata"]["name"] = json!(format!("w-{rank}"));
            pod["metadata"]["uid"] = json!(uid(&format!("w-{rank}")));
            pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "2" });
            pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("8");
            pod
        })
        .collect();
    let observed = observe(&lists(&[node("n1", 8), racked], &pods, &[]), &settings(), NOW_S);
    let Phase::Foreign { reason } = &observed.snapshot.jobs[0].phase else {
        panic!("{:?}", observed.snapshot.jobs)
    };
    assert!(reason.contains("hold 1"), "{reason}");
}
