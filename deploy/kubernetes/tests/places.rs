//! Where a pod may go beside GPUs: volumes, ports, other resources, and what no object shows until a node has refused.

use std::collections::BTreeSet;

use crate::fake::{World, owned};
use crate::leases::{Site, world};
use crate::objects::{NOW_S, node, pod, time, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::leases::LeaseSettings;
use serde_json::{Value, json};

fn plain(settings: &mut Settings) {
    settings.rounds.preemption = false;
    settings.leases = LeaseSettings::default();
}

fn nodes(num: u32) -> World {
    let names: Vec<String> = (1..=num).map(|number| format!("g{number}")).collect();
    let list: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 8)).collect();
    world(&list)
}

/// Pods of a Job that is not Indexed: each has another UID than the one in whose place it was made.
fn of_job(name: &str, gpus: u32) -> Value {
    let mut pod = owned(pod(name, gpus));
    pod["metadata"]["creationTimestamp"] = json!(time(NOW_S));
    pod
}

#[tokio::test]
async fn a_pod_that_is_made_anew_does_not_go_back_to_the_nodes_that_could_not_take_it() {
    let mut world = nodes(8);
    world.add_pod(of_job("train", 8));
    // For a reason that no object shows.
    world.takes.insert("train".into(), vec!["g8".into()]);
    let mut site = Site::new(world, "fifo", |settings| {
        plain(settings);
        settings.release_limit_s = 1;
    })
    .await;
    let mut tried = Vec::new();
    // A round, and the look of kube-scheduler and the controller of the Job.
    for _ in 0..40 {
        site.round(1).await;
        tried.extend(pinned(&site));
        site.tick();
        if site.node_of("train").is_some() {
            break;
        }
    }
    tried.dedup();
    let different: BTreeSet<&String> = tried.iter().collect();
    assert_eq!(different.len(), tried.len(), "a node was tried twice: {tried:?}");
    assert_eq!(site.node_of("train").as_deref(), Some("g8"), "{tried:?}");
}

/// Where the pods are pinned that are let go and not bound.
fn pinned(site: &Site) -> Vec<String> {
    let world = site.fake.world.lock().unwrap();
    let pods = world
        .pods
        .values()
        .filter(|pod| pod["spec"]["nodeName"].is_null());
    let seats = pods.filter_map(|pod| pod["spec"]["nodeSelector"]["kubernetes.io/hostname"].as_str());
    seats.map(str::to_owned).collect()
}

/// Rounds until pods whose names begin so are bound, or five have passed; the nodes.
async fn placed(site: &mut Site, starts: &[&str]) -> Vec<String> {
    for _ in 0..5 {
        site.round(2).await;
        site.tick();
        if starts.iter().all(|start| site.node_of(start).is_some()) {
            break;
        }
    }
    let nodes = starts.iter().map(|start| site.node_of(start).unwrap_or_default());
    nodes.collect()
}

#[tokio::test]
async fn a_pod_goes_where_its_volume_is() {
    for is_ephemeral in [false, true] {
        let mut world = nodes(8);
        let mut train = of_job("train", 8);
        train["spec"]["volumes"] = match is_ephemeral {
            false => json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]),
            true => json!([{ "name": "data", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }]),
        };
        world.add_pod(train);
        let name = if is_ephemeral { "train-data" } else { "data" };
        world.claims = vec![json!({ "metadata": { "name": name, "namespace": "team" },
            "spec": { "volumeName": "pv-1" } })];
        world.volumes = vec![
            json!({ "metadata": { "name": "pv-1" }, "spec": { "nodeAffinity": { "required": {
            "nodeSelectorTerms": [{ "matchExpressions": [
                { "key": "kubernetes.io/hostname", "operator": "In", "values": ["g8"] }] }] } } } }),
        ];
        let mut site = Site::new(world, "fifo", plain).await;
        assert_eq!(
            placed(&mut site, &["train"]).await,
            ["g8"],
            "ephemeral: {is_ephemeral}"
        );
        assert_eq!(site.num_evicted(), 0);
    }
}

#[tokio::test]
async fn pods_that_take_a_port_of_the_host_go_to_nodes_of_their_own() {
    let mut world = nodes(5);
    let with_port = |mut pod: Value| {
        pod["spec"]["containers"][0]["ports"] = json!([{ "containerPort": 29500, "hostPort": 29500 }]);
        pod
    };
    let mut taken = with_port(pod("taken", 1));
    taken["spec"]["schedulingGates"] = json!([]);
    taken["spec"]["nodeName"] = json!("g1");
    taken["status"]["phase"] = json!("Running");
    world.runs(&taken, "g1");
    world.add_pod(taken);
    for rank in 0..4 {
        let mut pod = with_port(owned(pod(&format!("w{rank}"), 2)));
        pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "4" });
        world.add_pod(pod);
    }
    let mut site = Site::new(world, "fifo", plain).await;
    let mut nodes = placed(&mut site, &["w0", "w1", "w2", "w3"]).await;
    nodes.sort();
    assert_eq!(nodes, ["g2", "g3", "g4", "g5"]);
}

#[tokio::test]
async fn every_resource_that_a_pod_asks_for_is_looked_for() {
    for (name, amount) in [
        ("rdma/hca", "1"),
        ("hugepages-1Gi", "4Gi"),
        ("ephemeral-storage", "100Gi"),
    ] {
        let mut world = nodes(8);
        let mut rich = node("g8", 8);
        rich["status"]["allocatable"][name] = json!(amount);
        world.add_node(rich);
        for job in ["one", "two"] {
            let mut pod = of_job(job, 1);
            pod["spec"]["containers"][0]["resources"]["requests"][name] = json!(amount);
            world.add_pod(pod);
        }
        let mut site = Site::new(world, "fifo", plain).await;
        let nodes = placed(&mut site, &["one"]).await;
        assert_eq!(nodes, ["g8"], "{name}");
        // Of the one device that there is the other pod waits for its end.
        assert_eq!(site.lifted(), [uid("one")], "{name}");
        site.end("one");
        // It was refused in the very round in which the first one got the device, and that is remembered for a minute.
        site.round(70).await;
        assert_eq!(placed(&mut site, &["two"]).await, ["g8"], "{name}");
        assert_eq!(site.num_evicted(), 0);
    }
}

#[tokio::test]
async fn what_a_pod_asks_for_as_a_whole_counts_as_what_its_containers_ask_for() {
    let mut world = nodes(3);
    for name in ["a", "b", "c"] {
        let mut pod = of_job(name, 1);
        pod["spec"]["containers"][0]["resources"]["requests"] = json!({});
        pod["spec"]["resources"] = json!({ "requests": { "cpu": "60" } });
        world.add_pod(pod);
    }
    let mut site = Site::new(world, "fifo", plain).await;
    let mut nodes = placed(&mut site, &["a", "b", "c"]).await;
    nodes.sort();
    assert_eq!(nodes, ["g1", "g2", "g3"]);
}

#[tokio::test]
async fn a_node_that_takes_no_more_pods_is_passed_over() {
    let mut world = nodes(2);
    let mut full = node("g1", 8);
    full["status"]["allocatable"]["pods"] = json!("0");
    world.add_node(full);
    world.add_pod(of_job("train", 1));
    let mut site = Site::new(world, "fifo", plain).await;
    assert_eq!(placed(&mut site, &["train"]).await, ["g2"]);
}

/// One device of a node of the gang fails, all of them do, or the node is deleted.
#[tokio::test]
async fn what_a_gang_holds_elsewhere_stays_its_own_when_one_of_its_nodes_shrinks() {
    for left in [Some("7"), Some("0"), None] {
        let mut site = Site::new(nodes(8), "fifo", plain).await;
        for rank in 0..4 {
            let mut pod = owned(pod(&format!("w{rank}"), 8));
            pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "4" });
            site.add(pod);
        }
        let gang = placed(&mut site, &["w0", "w1", "w2", "w3"]).await;
        {
            let mut world = site.fake.world.lock().unwrap();
            match left {
                Some(num) => {
                    let node = world.nodes.get_mut(&gang[0]).unwrap();
                    node["status"]["allocatable"]["nvidia.com/gpu"] = json!(num);
                }
                None => drop(world.nodes.remove(&gang[0])),
            }
        }
        let jobs = ["j1", "j2", "j3", "j4", "j5"];
        for name in jobs {
            site.add(of_job(name, 8));
        }
        let found = placed(&mut site, &jobs).await;
        let started: BTreeSet<&String> = found.iter().filter(|node| !node.is_empty()).collect();
        assert_eq!(started.len(), 4, "{left:?}: {found:?}");
        assert!(
            gang.iter().all(|node| !started.contains(node)),
            "{left:?}: {found:?}"
        );
        assert_eq!((pinned(&site).len(), site.num_evicted()), (0, 0), "{left:?}");
    }
}
