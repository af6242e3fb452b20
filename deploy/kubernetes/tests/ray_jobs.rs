//! RayJobs that wait suspended, and the clusters that they make.

use crate::driven::Driven;
use crate::fake::World;
use crate::objects::{NOW_S, pod, settings, time, uid};
use crate::suspended::open;
use pleach_daemon::snapshot::Phase;
use pleach_kubernetes::observe::observe;
use serde_json::{Value, json};

/// As KubeRay's samples have it: a head without GPUs, and two workers of 4.
fn ray_job(name: &str) -> Value {
    let container =
        |resources: Value| json!({ "name": "ray", "image": "rayproject/ray", "resources": resources });
    let of = |resources: Value| json!({ "spec": { "containers": [container(resources)] } });
    json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": name, "namespace": "team", "uid": uid(name),
            "resourceVersion": "1", "creationTimestamp": time(NOW_S - 100) },
        "spec": { "entrypoint": "python fit.py", "shutdownAfterJobFinishes": true, "submissionMode": "K8sJobMode",
            "rayClusterSpec": {
                "headGroupSpec": { "rayStartParams": {}, "template": of(json!({ "limits": { "cpu": "2" } })) },
                "workerGroupSpecs": [{ "groupName": "workers", "replicas": 2, "minReplicas": 1, "maxReplicas": 5,
                    "rayStartParams": {}, "template": of(json!({ "limits": { "nvidia.com/gpu": "4" } })) }] } } })
}

#[tokio::test]
async fn a_ray_job_waits_suspended_and_is_one_job_with_the_cluster_that_it_makes() {
    let admitted = |change: &dyn Fn(&mut Value)| {
        let mut object = ray_job("fit");
        change(&mut object["spec"]);
        World::default().admit(&mut object, "ray.io", "rayjobs", &settings());
        object
    };
    let object = admitted(&|_| ());
    assert_eq!(object["spec"]["suspend"], true);
    // What KubeRay refuses to suspend, and what comes as it is needed, waits with gates.
    for change in [
        &(|spec: &mut Value| spec["shutdownAfterJobFinishes"] = json!(false)) as &dyn Fn(&mut Value),
        &|spec| spec["clusterSelector"] = json!({ "ray.io/cluster": "shared" }),
        &|spec| spec["rayClusterSpec"]["enableInTreeAutoscaling"] = json!(true),
    ] {
        assert!(admitted(change)["spec"]["suspend"].is_null());
    }
    let mut driven = open(&["n1"], &[], |_| ()).await;
    let with = |driven: &Driven, object: Value| {
        let mut world = driven.fake.world.lock().unwrap();
        world.others.insert("rayjobs".into(), vec![object]);
    };
    with(&driven, object);
    let seen = async |driven: &Driven| {
        let lists = driven.fake.cluster(&driven.settings).lists().await.unwrap();
        let observed = observe(&lists, driven.controller.system().settings(), NOW_S + 2);
        let [job] = &observed.snapshot.jobs[..] else {
            panic!("{:?}", observed.snapshot.jobs)
        };
        (job.clone(), observed.jobs[&job.id].name.clone())
    };
    let (waits, name) = seen(&driven).await;
    assert_eq!(
        (waits.num_nodes, waits.gpus_per_node, name.as_str()),
        (2, 4, "team/fit")
    );
    assert_eq!(waits.phase, Phase::Waiting);
    driven.controller.round(NOW_S).await;
    // KubeRay makes the cluster, and its pods.
    let mut object = driven.fake.world.lock().unwrap().others["rayjobs"][0].clone();
    assert_eq!(object["spec"]["suspend"], false);
    object["status"] = json!({ "jobDeploymentStatus": "Initializing", "rayClusterName": "fit-x2k9q" });
    with(&driven, object.clone());
    for number in 0..2 {
        let mut worker = pod(&format!("fit-x2k9q-workers-{number}"), 4);
        worker["metadata"]["creationTimestamp"] = json!(time(NOW_S + 1));
        worker["metadata"]["labels"] = json!({ "ray.io/cluster": "fit-x2k9q", "ray.io/node-type": "worker" });
        worker["metadata"]["ownerReferences"] = json!([{ "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "name": "fit-x2k9q", "uid": uid("fit-x2k9q"), "controller": true }]);
        driven.fake.world.lock().unwrap().add_pod(worker);
    }
    let (made, name) = seen(&driven).await;
    assert_eq!((made.id, name.as_str()), (waits.id, "team/fit"));
    assert_eq!(
        (&made.phase, &made.nodes[..]),
        (
            &Phase::Released { since_s: NOW_S },
            &["n1".to_owned(), "n1".to_owned()][..]
        )
    );
    driven.controller.round(NOW_S + 2).await;
    assert_eq!(driven.fake.world.lock().unwrap().lifted.len(), 2);
    // Its mark stays, and tells its cluster, until it is over.
    driven.controller.round(NOW_S + 4).await;
    let notes = |driven: &Driven| {
        driven.fake.world.lock().unwrap().others["rayjobs"][0]["metadata"]["annotations"].clone()
    };
    assert!(notes(&driven)["pleach/decided"].is_string());
    object["status"]["jobDeploymentStatus"] = json!("Complete");
    with(&driven, object);
    let lists = driven.fake.cluster(&driven.settings).lists().await.unwrap();
    let observed = observe(&lists, driven.controller.system().settings(), NOW_S + 6);
    assert!(observed.jobs.values().all(|job| job.owners.is_empty()));
}
