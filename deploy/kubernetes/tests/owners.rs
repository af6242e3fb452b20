//! Shapes of gangs by owner: each waits until it is whole, then is one job; pods of other owners are jobs of their own.

use crate::objects::{NOW_S, lists, node, pod, settings};
use pleach_daemon::snapshot::Phase;
use pleach_kubernetes::observe::observe;
use serde_json::{Value, json};

/// Pods of 8 GPUs with labels, annotations and more of the spec.
fn pods(num: usize, labels: &Value, annotations: &Value, spec: &Value) -> Vec<Value> {
    let of = |rank: usize| {
        let mut pod = pod(&format!("p-{rank}"), 8);
        let metadata = pod["metadata"].as_object_mut().unwrap();
        metadata.insert("labels".into(), labels.clone());
        metadata.insert("annotations".into(), annotations.clone());
        for (key, value) in spec.as_object().unwrap() {
            pod["spec"][key] = value.clone();
        }
        pod
    };
    (0..num).map(of).collect()
}

/// Nodes of each job that waits, and of each that is blocked, smallest first.
fn seen(pods: &[Value]) -> (Vec<u32>, Vec<u32>) {
    let nodes = ["n1", "n2", "n3", "n4"].map(|name| node(name, 8));
    let observed = observe(&lists(&nodes, pods, &[]), &settings(), NOW_S);
    let (mut waiting, mut blocked) = (Vec::new(), Vec::new());
    for job in &observed.snapshot.jobs {
        match &job.phase {
            Phase::Waiting => waiting.push(job.num_gpus() / 8),
            Phase::Blocked { .. } => blocked.push(job.num_gpus() / 8),
            other => panic!("{other:?}"),
        }
    }
    (waiting, blocked)
}

#[test]
fn each_shape_of_gang_by_owner_is_one_job_and_waits_for_its_pods_where_its_size_is_known() {
    let none = json!({});
    let leader =
        json!({ "leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": "0" });
    let of_three = json!({ "leaderworkerset.sigs.k8s.io/size": "3" });
    let training =
        json!({ "training.kubeflow.org/job-name": "t", "training.kubeflow.org/replica-type": "worker" });
    let torch = json!({ "containers": [{
        "name": "main",
        "env": [{ "name": "PET_NNODES", "value": "3:4" }],
        "resources": { "limits": { "nvidia.com/gpu": "8" } },
    }] });
    let native = json!({ "schedulingGroup": { "podGroupName": "pg" } });
    for (what, labels, annotations, spec, is_sized) in [
        ("LeaderWorkerSet", &leader, &of_three, &none, true),
        ("PyTorchJob", &training, &none, &torch, true),
        ("MPIJob", &training, &none, &none, false),
        (
            "RayCluster",
            &json!({ "ray.io/cluster": "r" }),
            &none,
            &none,
            false,
        ),
        ("Grove", &json!({ "grove.io/podgang": "g" }), &none, &none, false),
        ("PodGroup", &none, &none, &native, false),
    ] {
        assert_eq!(
            seen(&pods(3, labels, annotations, spec)),
            (vec![3], vec![]),
            "{what}"
        );
        let short = seen(&pods(2, labels, annotations, spec));
        let expected = match is_sized {
            true => (vec![], vec![2]),
            // It has not grown for a while, so it is whole.
            false => (vec![2], vec![]),
        };
        assert_eq!(short, expected, "{what}");
    }
}

#[test]
fn pods_of_other_owners_are_jobs_of_their_own() {
    let none = json!({});
    let of_set = json!({ "statefulset.kubernetes.io/pod-name": "serve-0", "app": "serve" });
    assert_eq!(seen(&pods(3, &of_set, &none, &none)), (vec![1, 1, 1], vec![]));
    // A leader without the number of its group is of no group.
    let leader = json!({ "leaderworkerset.sigs.k8s.io/name": "vllm" });
    assert_eq!(seen(&pods(2, &leader, &none, &none)), (vec![1, 1], vec![]));
}
