//! Lists of the API server as JSON, and what a round sees of them.

use crate::objects::{self, NOW_S, job, let_go, lists, node, pod, settings};
use pleach_daemon::snapshot::{JobSeen, Phase};
use pleach_kubernetes::Settings;
use pleach_kubernetes::observe::{Observed, observe};
use pleach_kubernetes::standing::Duty;
use pleach_scheduler::cluster::NodeState;
use serde_json::{Value, json};

fn see(nodes: &[Value], pods: &[Value], jobs: &[Value]) -> Observed {
    observe(&lists(nodes, pods, jobs), &settings(), NOW_S)
}

fn one(observed: &Observed) -> &JobSeen {
    assert_eq!(observed.snapshot.jobs.len(), 1, "{:?}", observed.snapshot.jobs);
    &observed.snapshot.jobs[0]
}

fn reason(job: &JobSeen) -> &str {
    match &job.phase {
        Phase::Blocked { reason } | Phase::Foreign { reason } => reason,
        phase => panic!("{phase:?}"),
    }
}

#[test]
fn a_held_pod_waits_with_its_gpus_its_estimate_and_its_namespace_as_account() {
    let mut waiting = pod("p", 2);
    waiting["spec"]["activeDeadlineSeconds"] = json!(600);
    let observed = see(&[node("n1", 8)], &[waiting.clone()], &[]);
    let job = one(&observed);
    assert_eq!(job.phase, Phase::Waiting);
    assert_eq!((job.num_nodes, job.gpus_per_node, job.is_packed), (1, 2, false));
    assert_eq!((job.limit_s, job.account.as_str()), (Some(600), "team"));
    assert_eq!(job.submit_s, NOW_S - 100);
    assert_eq!(job.id.to_string(), waiting["metadata"]["uid"].as_str().unwrap());
    waiting["metadata"]["annotations"] = json!({ "pleach/estimate-s": "90" });
    assert_eq!(one(&see(&[node("n1", 8)], &[waiting], &[])).limit_s, Some(90));
}

#[test]
fn nodes_are_up_draining_or_down_and_what_pods_hold_is_used() {
    let mut cordoned = node("n2", 4);
    cordoned["spec"]["unschedulable"] = json!(true);
    let mut lost = node("n3", 4);
    lost["status"]["conditions"] = json!([{ "type": "Ready", "status": "Unknown" }]);
    let mut tainted = node("n4", 4);
    tainted["spec"]["taints"] = json!([{ "key": "repair", "effect": "NoExecute" }]);
    let mut expected = node("n5", 4);
    expected["spec"]["taints"] = json!([{ "key": "nvidia.com/gpu", "effect": "NoSchedule" }]);
    let mut bare = node("n6", 4);
    bare["metadata"]["labels"] = json!({});
    let mut foreign = pod("other", 3);
    foreign["spec"]["schedulerName"] = json!("volcano");
    foreign["spec"]["schedulingGates"] = json!([]);
    foreign["spec"]["nodeName"] = json!("n1");
    let mut ended = foreign.clone();
    ended["status"]["phase"] = json!("Succeeded");
    ended["metadata"]["name"] = json!("ended");
    let nodes = [node("n1", 8), cordoned, lost, tainted, expected, bare];
    let observed = see(&nodes, &[foreign, ended], &[]);
    let found: Vec<(&str, u32, u32, NodeState)> = observed
        .snapshot
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.num_gpus, node.num_gpus_used, node.state))
        .collect();
    assert_eq!(
        found,
        [
            ("n1", 8, 3, NodeState::Up),
            ("n2", 4, 0, NodeState::Draining),
            ("n3", 4, 0, NodeState::Down),
            ("n4", 4, 0, NodeState::Draining),
            ("n5", 4, 0, NodeState::Up),
        ]
    );
    assert_eq!(observed.snapshot.nodes[0].gpu_type, "A100-SXM4-80GB");
    // 64 CPUs, of which the pod asked for 4.
    assert_eq!(observed.snapshot.nodes[0].num_cpus_free, 60);
    assert!(reason(one(&observed)).contains("another scheduler"));
    assert!(observed.notes[0].contains("n6") && observed.notes[0].contains("hostname"));
}

/// Pods of a gang, with labels and annotations.
fn gang(num: usize, labels: &Value, annotations: &Value) -> Vec<Value> {
    (0..num)
        .map(|rank| {
            let mut pod = pod(&format!("w-{rank}"), 2);
            pod["metadata"]["labels"] = labels.clone();
            pod["metadata"]["annotations"] = annotations.clone();
            pod
        })
        .collect()
}

#[test]
fn gangs_are_told_by_the_labels_of_their_makers_and_wait_until_they_are_whole() {
    let indexed = job("train", 3, &json!({}));
    let part = |name: &str, replicas: &str| {
        let labels = json!({
            "jobset.sigs.k8s.io/jobset-name": "set",
            "jobset.sigs.k8s.io/replicatedjob-name": name,
            "jobset.sigs.k8s.io/replicatedjob-replicas": replicas,
        });
        job(&format!("set-{name}-0"), 1, &labels)
    };
    let mut launcher = part("launcher", "1");
    launcher["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({});
    let cases = [
        (
            json!({ "batch.kubernetes.io/job-name": "train" }),
            json!({}),
            "train",
        ),
        (
            json!({ "jobset.sigs.k8s.io/jobset-name": "set" }),
            json!({}),
            "set",
        ),
        (
            json!({ "kueue.x-k8s.io/pod-group-name": "group" }),
            json!({ "kueue.x-k8s.io/pod-group-total-count": "3" }),
            "group",
        ),
        (
            json!({ "scheduling.x-k8s.io/pod-group": "group" }),
            json!({ "pleach/gang-size": "3" }),
            "group",
        ),
        (
            json!({}),
            json!({ "scheduling.k8s.io/group-name": "group", "pleach/gang-size": "3" }),
            "group",
        ),
        (
            json!({ "pleach/gang": "own" }),
            json!({ "pleach/gang-size": "3" }),
            "own",
        ),
    ];
    for (labels, annotations, name) in cases {
        let jobs = [indexed.clone(), part("workers", "3"), launcher.clone()];
        let pods = gang(3, &labels, &annotations);
        let few = see(&[node("n1", 8)], &pods[..2], &jobs);
        assert!(
            reason(one(&few)).contains("2 of 3"),
            "{labels}: {}",
            reason(one(&few))
        );
        let observed = see(&[node("n1", 8)], &pods, &jobs);
        let job = one(&observed);
        assert_eq!(job.phase, Phase::Waiting, "{labels}");
        assert_eq!((job.num_nodes, job.gpus_per_node, job.is_packed), (3, 2, true));
        assert_eq!(observed.jobs[&job.id].name, format!("team/{name}"));
        assert_eq!(one(&few).id, job.id, "a gang keeps its id");
    }
}

#[test]
fn a_gang_of_unknown_size_waits_until_it_grows_no_more() {
    let labels = json!({ "scheduling.x-k8s.io/pod-group": "group" });
    let mut pods = gang(2, &labels, &json!({}));
    assert_eq!(one(&see(&[node("n1", 8)], &pods, &[])).phase, Phase::Waiting);
    pods[1]["metadata"]["creationTimestamp"] = json!(objects::time(NOW_S - 3));
    let observed = see(&[node("n1", 8)], &pods, &[]);
    assert!(reason(one(&observed)).contains("may still grow"));
}

#[test]
fn pods_of_a_plain_job_are_jobs_of_their_own_and_an_index_keeps_its_id() {
    let mut queue = job("queue", 2, &json!({}));
    queue["spec"]["completionMode"] = json!("NonIndexed");
    queue["spec"]["activeDeadlineSeconds"] = json!(77);
    let labels = json!({ "batch.kubernetes.io/job-name": "queue" });
    let observed = see(&[node("n1", 8)], &gang(2, &labels, &json!({})), &[queue.clone()]);
    assert_eq!(observed.snapshot.jobs.len(), 2);
    assert!(observed.snapshot.jobs.iter().all(|job| job.limit_s == Some(77)));
    queue["spec"]["completionMode"] = json!("Indexed");
    queue["spec"]["completions"] = json!(9);
    let annotations = json!({ "batch.kubernetes.io/job-completion-index": "5" });
    let mut pods = gang(1, &labels, &annotations);
    let first = one(&see(&[], &pods, &[queue.clone()])).id;
    pods[0]["metadata"]["uid"] = json!("123e4567-e89b-42d3-a456-426614174999");
    assert_eq!(one(&see(&[], &pods, &[queue])).id, first);
}

#[test]
fn gates_of_others_are_waited_for() {
    let mut pod = pod("p", 1);
    pod["spec"]["schedulingGates"] =
        json!([{ "name": "kueue.x-k8s.io/admission" }, { "name": "pleach/hold" }]);
    let observed = see(&[node("n1", 8)], &[pod], &[]);
    assert!(reason(one(&observed)).contains("kueue.x-k8s.io/admission"));
}

#[test]
fn a_pod_that_was_let_go_holds_its_place_until_it_runs_there() {
    let seats = [("n1", 1)];
    let mut released = let_go(&pod("p", 2), "n1", &seats);
    // The node selector that we wrote is none of the user's.
    let observed = see(&[node("n1", 8)], &[released.clone()], &[]);
    let job = one(&observed);
    assert_eq!(job.phase, Phase::Released { since_s: NOW_S - 5 });
    assert_eq!(
        (job.nodes.as_slice(), observed.snapshot.nodes[0].num_gpus_used),
        (&["n1".to_owned()][..], 0)
    );
    released["spec"]["nodeName"] = json!("n1");
    released["status"] = json!({ "phase": "Running", "startTime": objects::time(NOW_S - 4) });
    let observed = see(&[node("n1", 8)], &[released.clone()], &[]);
    let job = one(&observed);
    assert_eq!((&job.phase, job.start_s), (&Phase::Running, Some(NOW_S - 4)));
    assert_eq!(observed.snapshot.nodes[0].num_gpus_used, 2);
    released["metadata"]["deletionTimestamp"] = json!(objects::time(NOW_S));
    let observed = see(&[node("n1", 8)], &[released], &[]);
    assert!(reason(one(&observed)).contains("being stopped"));
    assert_eq!(
        observed.snapshot.nodes[0].num_gpus_used, 2,
        "it holds its GPUs to the end"
    );
}

#[test]
fn a_release_that_was_cut_short_is_to_be_finished_on_the_seats_of_its_mark() {
    let labels = json!({ "pleach/gang": "g" });
    let mut pods = gang(3, &labels, &json!({ "pleach/gang-size": "3" }));
    let seats = [("n1", 1), ("n2", 2)];
    pods[1] = let_go(&pods[1], "n2", &seats);
    let observed = see(&[node("n1", 2), node("n2", 4)], &pods, &[]);
    let job = one(&observed);
    assert_eq!(job.phase, Phase::Released { since_s: NOW_S - 5 });
    assert_eq!(job.nodes, ["n1", "n2", "n2"]);
    assert_eq!(observed.jobs[&job.id].duty, Duty::Finish);
    // More pods than seats cannot be.
    let mut more = gang(5, &labels, &json!({ "pleach/gang-size": "3" }));
    more[1] = pods[1].clone();
    let observed = see(&[node("n1", 2), node("n2", 4)], &more, &[]);
    assert_eq!(observed.jobs[&one(&observed).id].duty, Duty::GiveBackInTurn);
}

#[test]
fn what_the_tables_cannot_say_waits_to_be_given_back_and_nodes_by_name_are_decided() {
    let change = |change: &dyn Fn(&mut Value)| {
        let mut pod = pod("p", 2);
        change(&mut pod);
        pod
    };
    let mut racked = node("n1", 8);
    racked["metadata"]["labels"]["rack"] = json!("r1");
    let see = |pod: Value| see(&[racked.clone(), node("n2", 8)], &[pod], &[]);
    let in_turn = [
        (
            change(&|pod| {
                pod["spec"]["affinity"] = json!({ "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "zone" }] } });
            }),
            "other pods",
        ),
        (
            change(&|pod| pod["spec"]["resourceClaims"] = json!([{ "name": "gpu" }])),
            "DRA",
        ),
        (
            change(&|pod| {
                pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.10gb"] = json!("1");
            }),
            "two resources",
        ),
    ];
    for (pod, word) in in_turn {
        let observed = see(pod);
        let job = one(&observed);
        let pods = &observed.jobs[&job.id];
        assert_eq!((&job.phase, pods.duty), (&Phase::Waiting, Duty::None), "{word}");
        assert!(
            pods.turn.as_deref().unwrap().contains(word),
            "{word}: {:?}",
            pods.turn
        );
    }
    for label in ["kubernetes.io/hostname", "rack"] {
        let value = if label == "rack" { "r1" } else { "n1" };
        let observed = see(change(&|pod| {
            pod["spec"]["nodeSelector"] = json!({ label: value })
        }));
        let job = one(&observed);
        assert_eq!(
            (&job.phase, &observed.jobs[&job.id].turn),
            (&Phase::Waiting, &None)
        );
        let rules = job
            .terms
            .rules
            .iter()
            .map(|row| &observed.snapshot.site.rules[*row as usize]);
        let closed: Vec<&str> = rules.map(|rule| rule.closed.as_str()).collect();
        assert_eq!(closed, ["n2"], "{label}");
    }
    // What takes no GPUs takes no turn.
    let observed = see(change(&|pod| {
        pod["spec"]["containers"][0]["resources"] = json!({})
    }));
    let job = one(&observed);
    assert!(reason(job).contains("no GPUs"));
    assert_eq!(observed.jobs[&job.id].duty, Duty::GiveBack);
}

#[test]
fn selectors_affinity_and_tolerations_become_gpu_types() {
    let mut v100 = node("n2", 4);
    v100["metadata"]["labels"]["nvidia.com/gpu.product"] = json!("V100");
    let mut tainted = node("n3", 4);
    tainted["metadata"]["labels"]["nvidia.com/gpu.product"] = json!("H100");
    tainted["spec"]["taints"] = json!([{ "key": "nvidia.com/gpu", "value": "h100", "effect": "NoSchedule" }]);
    let nodes = [node("n1", 8), v100, tainted];
    let types = |change: &dyn Fn(&mut Value)| {
        let mut pod = pod("p", 1);
        change(&mut pod);
        let observed = see(&nodes, &[pod], &[]);
        let job = one(&observed).clone();
        (job.phase.clone(), job.gpu_types)
    };
    let two = vec!["A100-SXM4-80GB".to_owned(), "V100".to_owned()];
    assert_eq!(types(&|_| ()), (Phase::Waiting, two));
    let tolerant = |pod: &mut Value| {
        pod["spec"]["tolerations"] = json!([{ "key": "nvidia.com/gpu", "operator": "Exists" }]);
    };
    assert_eq!(types(&tolerant), (Phase::Waiting, Vec::new()), "all types");
    let wants = |operator: &'static str, values: Value| {
        move |pod: &mut Value| {
            pod["spec"]["affinity"] = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": [
                    { "key": "nvidia.com/gpu.product", "operator": operator, "values": values }] }] } } });
        }
    };
    assert_eq!(types(&wants("In", json!(["V100"]))).1, ["V100"]);
    assert_eq!(types(&wants("NotIn", json!(["V100"]))).1, ["A100-SXM4-80GB"]);
    let (phase, _) = types(&wants("In", json!(["B200"])));
    assert!(
        matches!(phase, Phase::Blocked { .. }),
        "it is held until there is such a node: {phase:?}"
    );
}

#[test]
fn mig_slices_and_time_sliced_replicas_are_units_of_their_own_types() {
    let mut mixed = node("n1", 2);
    mixed["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] = json!("14");
    let mut shared = node("n2", 16);
    shared["metadata"]["labels"]["nvidia.com/gpu.replicas"] = json!("4");
    let mut crowded = node("n3", 128);
    crowded["metadata"]["labels"]["nvidia.com/gpu.replicas"] = json!("16");
    let mut slice = pod("slice", 1);
    slice["spec"]["containers"][0]["resources"]["limits"] = json!({ "nvidia.com/mig-1g.10gb": "2" });
    let observed = see(&[mixed, shared, crowded], &[slice], &[]);
    let found: Vec<(&str, &str, u32)> = observed
        .snapshot
        .nodes
        .iter()
        .map(|unit| (unit.name.as_str(), unit.gpu_type.as_str(), unit.num_gpus))
        .collect();
    assert_eq!(
        found,
        [
            ("n1", "A100-SXM4-80GB", 2),
            ("n1/nvidia.com/mig-1g.10gb", "mig-1g.10gb", 14),
            ("n2", "A100-SXM4-80GB-SHARED", 16),
        ]
    );
    let job = one(&observed);
    assert_eq!(
        (job.gpus_per_node, job.gpu_types.as_slice()),
        (2, &["mig-1g.10gb".to_owned()][..])
    );
    assert!(observed.notes[0].contains("n3") && observed.notes[0].contains("64"));
}

#[test]
fn sidecars_count_beside_containers_and_init_containers_do_not() {
    let mut pod = pod("p", 2);
    let asks = |num: &str| json!({ "limits": { "nvidia.com/gpu": num } });
    pod["spec"]["initContainers"] = json!([
        { "name": "side", "restartPolicy": "Always", "resources": asks("1") },
        { "name": "setup", "resources": asks("1") },
    ]);
    assert_eq!(one(&see(&[], &[pod.clone()], &[])).gpus_per_node, 3);
    pod["spec"]["initContainers"][1]["resources"] = asks("4");
    assert_eq!(one(&see(&[], &[pod], &[])).gpus_per_node, 5);
}

#[test]
fn nobody_who_would_be_lost_or_was_started_by_others_may_be_preempted() {
    let settings = Settings {
        rounds: pleach_daemon::RoundSettings {
            preemption: true,
            ..Settings::default().rounds
        },
        ..settings()
    };
    let phase = |pod: &Value| {
        let observed = observe(
            &lists(&[node("n1", 8)], std::slice::from_ref(pod), &[]),
            &settings,
            NOW_S,
        );
        one(&observed).phase.clone()
    };
    let mut running = let_go(&pod("p", 2), "n1", &[("n1", 1)]);
    running["spec"]["nodeName"] = json!("n1");
    assert!(
        matches!(phase(&running), Phase::Foreign { .. }),
        "no controller owns it"
    );
    running["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true }]);
    assert_eq!(phase(&running), Phase::Running);
    running["metadata"]["annotations"] = json!({});
    assert!(
        matches!(phase(&running), Phase::Foreign { .. }),
        "it was not started by the policy"
    );
}
