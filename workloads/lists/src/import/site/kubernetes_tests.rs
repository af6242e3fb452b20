//! Pods, Jobs and nodes as `kubectl get -o json` prints them, written by hand.

use std::path::PathBuf;

use super::{NodeTable, SiteImport, SiteOptions, import_site};
use crate::Outcome;

/// A pod: its name, labels, GPUs, node, when it was made, began and ended, and its phase.
#[allow(clippy::too_many_arguments)] // A row of a fixture.
fn pod(
    name: &str,
    labels: &str,
    resources: &str,
    node: &str,
    [made, began, ended]: [&str; 3],
    phase: &str,
) -> String {
    let state = match ended {
        "" => r#"{"running": {}}"#.to_owned(),
        ended => format!(r#"{{"terminated": {{"exitCode": 0, "finishedAt": "2026-03-02T{ended}Z"}}}}"#),
    };
    let start = match began {
        "" => String::new(),
        began => format!(r#""startTime": "2026-03-02T{began}Z","#),
    };
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{name}", "namespace": "vision",
        "creationTimestamp": "2026-03-02T{made}Z", "labels": {{{labels}}}}},
        "spec": {{"nodeName": "{node}", "priorityClassName": "high", "activeDeadlineSeconds": 7200,
            "containers": [{{"name": "main", "resources": {resources}}}, {{"name": "log", "resources": {{}}}}]}},
        "status": {{"phase": "{phase}", {start} "containerStatuses": [{{"name": "main", "state": {state}}}]}}}}"#
    )
}

const EIGHT: &str =
    r#"{"requests": {"nvidia.com/gpu": "8", "cpu": "32"}, "limits": {"nvidia.com/gpu": "8"}}"#;
const ONE: &str = r#"{"limits": {"nvidia.com/gpu": 1}}"#;
const GANG: &str = r#""jobset.sigs.k8s.io/jobset-name": "llm", "kueue.x-k8s.io/queue-name": "team-a""#;

/// A Job of a name, made, begun and completed.
fn job(name: &str, parallelism: u32, [made, began, ended]: [&str; 3]) -> String {
    let ended = match ended {
        "" => r#""active": 1"#.to_owned(),
        ended => format!(r#""completionTime": "2026-03-02T{ended}Z", "succeeded": {parallelism}"#),
    };
    format!(
        r#"{{"apiVersion": "batch/v1", "kind": "Job", "metadata": {{"name": "{name}", "namespace": "vision",
        "creationTimestamp": "2026-03-02T{made}Z", "labels": {{"kueue.x-k8s.io/queue-name": "team-b"}}}},
        "spec": {{"parallelism": {parallelism}, "template": {{"spec": {{"nodeSelector":
            {{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}, "containers": [{{"resources": {ONE}}}]}}}}}},
        "status": {{"startTime": "2026-03-02T{began}Z", {ended}}}}}"#
    )
}

const NODES: &str = r#"{"apiVersion": "v1", "items": [
    {"kind": "Node", "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}},
     "status": {"capacity": {"nvidia.com/gpu": "8", "cpu": "128", "memory": "1056289712Ki"}}},
    {"kind": "Node", "metadata": {"name": "n2", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}},
     "status": {"capacity": {"nvidia.com/gpu": "8", "cpu": "128", "memory": "1056289712Ki"}}},
    {"kind": "Node", "metadata": {"name": "t1", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}},
     "status": {"capacity": {"nvidia.com/gpu": "4", "cpu": "63500m", "memory": "255Gi"}}},
    {"kind": "Node", "metadata": {"name": "c1"}, "status": {"capacity": {"cpu": "64", "memory": "128Gi"}}}],
    "kind": "List"}"#;

fn read(items: &[String], nodes: Option<&str>) -> SiteImport {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("pods.json");
    // As kubectl lays it out: two keys, then the list.
    let text = format!(
        "{{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n{}\n],\n    \"kind\": \"List\"\n}}\n",
        items.join(",\n")
    );
    std::fs::write(&path, &text).unwrap();
    let options = SiteOptions {
        nodes: nodes.map(|text| NodeTable::of_text(text).unwrap()),
        ..SiteOptions::default()
    };
    let found = import_site(&path, &options).unwrap();
    // The same in one line, as other programs pass it on.
    std::fs::write(&path, text.replace('\n', " ")).unwrap();
    assert_eq!(import_site(&path, &options).unwrap().workload, found.workload);
    found
}

/// Objects of every kind that is read and of those that are left out.
fn objects() -> Vec<String> {
    vec![
        pod(
            "llm-0",
            GANG,
            EIGHT,
            "n1",
            ["08:00:00", "09:00:00", "10:00:00"],
            "Succeeded",
        ),
        pod(
            "llm-1",
            GANG,
            EIGHT,
            "n2",
            ["08:00:05", "09:00:10", "10:30:00"],
            "Succeeded",
        ),
        pod("notebook", "", ONE, "t1", ["08:30:00", "08:30:02", ""], "Running"),
        pod(
            "eval",
            "",
            ONE,
            "t1",
            ["09:00:00", "09:10:00", "09:20:00"],
            "Failed",
        ),
        pod("waits", "", ONE, "", ["09:30:00", "", ""], "Pending"),
        pod("web", "", "{}", "c1", ["07:00:00", "07:00:01", ""], "Running"),
        pod(
            "slice",
            "",
            r#"{"limits": {"nvidia.com/mig-1g.10gb": "1"}}"#,
            "n1",
            ["07:00:00", "07:00:01", ""],
            "Running",
        ),
        // Its pods are gone: the Job alone tells of it.
        job("night", 4, ["01:00:00", "02:00:00", "03:00:00"]),
        // It was asked for an hour before Kueue admitted it and its pod was made.
        job("train", 1, ["08:00:00", "09:00:00", "11:00:00"]),
        pod(
            "train-x7",
            r#""batch.kubernetes.io/job-name": "train""#,
            ONE,
            "n1",
            ["09:00:00", "09:00:03", "11:00:00"],
            "Succeeded",
        ),
        r#"{"kind": "Service", "metadata": {"name": "web"}}"#.to_owned(),
    ]
}

#[test]
fn pods_become_gangs_and_what_is_left_out_is_counted() {
    let found = read(&objects(), Some(NODES));
    let words = found.report.to_string();
    for said in [
        "11 rows read, 5 kept, 6 left out",
        "a pod of a gang: its GPUs are added to those of its first: 1 rows",
        "a Job whose pods are in the list: it says when they were asked for: 1 rows",
        "asks for no GPU: 1 rows",
        "asks for GPU types that the cluster does not have: 1 rows",
        "never began: 1 rows",
        "no pod and no Job: 1 rows",
        "still runs at the end of the list",
        "cluster: the 3 nodes of the list of nodes",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let list = &found.workload;
    let of = |id: &str| {
        let job = list
            .jobs
            .iter()
            .find(|job| job.id == format!("vision/{id}"))
            .unwrap();
        let observed = job.observed.as_deref().unwrap();
        let wait_s = (observed.start - job.submit).as_secs_f64();
        (
            job.num_gpus,
            job.run_time_s,
            wait_s,
            observed.partition.clone(),
            job.outcome,
        )
    };
    // From the first start to the last end, from the first creation on.
    assert_eq!(
        of("llm"),
        (16, 5400.0, 3600.0, "team-a".into(), Outcome::Completed)
    );
    assert_eq!(of("eval"), (1, 600.0, 600.0, String::new(), Outcome::Failed));
    assert_eq!(
        of("night"),
        (4, 3600.0, 3600.0, "team-b".into(), Outcome::Completed)
    );
    assert_eq!(
        of("train"),
        (1, 7197.0, 3603.0, "team-b".into(), Outcome::Completed)
    );
    // It runs until the latest instant that the document names.
    assert_eq!(of("notebook").1, 8998.0);
    let llm = list.jobs.iter().find(|job| job.id == "vision/llm").unwrap();
    assert_eq!(llm.observed.as_deref().unwrap().nodes, "n1,n2");
    assert_eq!(llm.estimate_s, Some(7200.0));
    assert_eq!(list.cluster.tenants[usize::from(llm.tenant)].name, "vision");
    // A job that asks for a type runs on that alone.
    let night = list.jobs.iter().find(|job| job.id == "vision/night").unwrap();
    assert_eq!(
        list.classes[usize::from(night.class)].name,
        "NVIDIA-A100-SXM4-80GB"
    );
}

#[test]
fn a_pod_that_was_made_again_is_no_second_gpu() {
    let label = r#""job-name": "again""#;
    let found = read(
        &[
            pod(
                "again-a",
                label,
                ONE,
                "n1",
                ["08:00:00", "08:00:10", "09:00:00"],
                "Failed",
            ),
            pod(
                "again-b",
                label,
                ONE,
                "n2",
                ["09:00:01", "09:00:10", "10:00:10"],
                "Succeeded",
            ),
        ],
        None,
    );
    let job = &found.workload.jobs[0];
    assert_eq!(
        (found.workload.jobs.len(), job.num_gpus, job.run_time_s),
        (1, 1, 7200.0)
    );
}

#[test]
fn nodes_have_the_types_and_sizes_of_their_labels_and_capacity() {
    let table = NodeTable::of_text(NODES).unwrap();
    let (cluster, notes) = table.cluster().unwrap();
    let groups = cluster.node_groups.iter();
    let groups: Vec<_> = groups
        .map(|group| {
            (
                group.count,
                group.gpus_per_node,
                group.gpu_type.as_str(),
                group.cpu_cores,
                group.memory_gib,
            )
        })
        .collect();
    // 1056289712 KiB are 1007.4 GiB.
    assert_eq!(
        groups,
        [
            (2, 8, "NVIDIA-A100-SXM4-80GB", 128.0, 1007.0),
            (1, 4, "Tesla-T4", 63.5, 255.0)
        ]
    );
    assert_eq!(
        notes[..2],
        ["4 nodes read, 3 kept, 1 left out", "left out: no GPUs: 1 nodes"]
    );
    let none = NodeTable::of_text(r#"{"apiVersion": "v1", "items": []}"#).unwrap_err();
    assert!(none.contains("no node with GPUs"), "{none}");
    let torn = NodeTable::of_text(&NODES[..200]).unwrap_err();
    assert!(torn.contains("kubectl get nodes -o json"), "{torn}");
}

proptest::proptest! {
    #[test]
    fn no_document_panics(text in "[\\[\\]{}:,\"a-zA-Z0-9 .TZ-]{0,200}") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pods.json");
        let items = format!("{{\"apiVersion\": \"v1\", \"items\": [{{\"kind\": \"Pod\", {text}");
        std::fs::write(&path, items).unwrap();
        let _ = import_site(&path, &SiteOptions::default());
        let _ = NodeTable::of_text(&text);
    }
}

/// The Jobs of a JobSet are one gang, with pods and without, and each of them is counted.
#[test]
fn every_job_of_a_jobset_is_counted() {
    let of_set = |name: &str, set: &str| {
        let label = format!(r#""labels": {{"jobset.sigs.k8s.io/jobset-name": "{set}", "#);
        job(name, 2, ["08:00:00", "09:00:00", "10:00:00"]).replacen(r#""labels": {"#, &label, 1)
    };
    let objects = [
        of_set("llm-a", "llm"),
        of_set("llm-b", "llm"),
        pod(
            "llm-0",
            GANG,
            EIGHT,
            "n1",
            ["08:00:00", "09:00:00", "10:00:00"],
            "Succeeded",
        ),
        of_set("gone-a", "gone"),
        of_set("gone-b", "gone"),
    ];
    let found = read(&objects, Some(NODES));
    let words = found.report.to_string();
    assert!(words.contains("5 rows read, 2 kept, 3 left out"), "{words}");
    let gpus: Vec<u32> = found.workload.jobs.iter().map(|job| job.num_gpus).collect();
    assert_eq!(gpus, [8, 4]);
}

/// A node with whole GPUs and slices, one of slices alone, two racks, and pods that hold cores of them without a GPU.
#[test]
fn slices_are_gpus_of_their_own_racks_come_from_labels_and_cores_of_other_pods_are_counted() {
    let node = |name: &str, rack: &str, resources: &str| {
        format!(
            r#"{{"kind": "Node", "metadata": {{"name": "{name}", "labels": {{"nvidia.com/gpu.product": "A100",
            "network.topology.nvidia.com/leaf": "{rack}"}}}}, "status": {{"capacity": {{"cpu": "64", "memory": "512Gi", {resources}}}}}}}"#
        )
    };
    let mixed = r#""nvidia.com/gpu": "6", "nvidia.com/mig-1g.10gb": "14""#;
    let nodes = [
        node("m1", "s1", mixed),
        node("m2", "s1", mixed),
        node("m3", "s2", mixed),
        node("only", "s2", r#""nvidia.com/mig-3g.40gb": "2""#),
    ];
    let nodes = format!(
        r#"{{"apiVersion": "v1", "items": [{}], "kind": "List"}}"#,
        nodes.join(",")
    );
    let slices = r#"{"limits": {"nvidia.com/mig-1g.10gb": "2"}}"#;
    let cores = r#"{"requests": {"cpu": "8"}}"#;
    let times = ["08:00:00", "08:10:00", "09:10:00"];
    let items = [
        pod(
            "whole",
            "",
            r#"{"limits": {"nvidia.com/gpu": "4"}}"#,
            "m1",
            times,
            "Succeeded",
        ),
        pod("slices", "", slices, "m1", times, "Succeeded"),
        pod("feeder", "", cores, "m1", times, "Succeeded"),
        pod("elsewhere", "", cores, "c9", times, "Succeeded"),
    ];
    let import = read(&items, Some(&nodes));
    let groups = &import.workload.cluster.node_groups;
    let groups: Vec<(u32, u32, &str, u32)> = groups
        .iter()
        .map(|group| {
            (
                group.count,
                group.gpus_per_node,
                group.gpu_type.as_str(),
                group.nodes_per_rack,
            )
        })
        .collect();
    let expected = [
        (3, 6, "A100", 2),
        (3, 14, "mig-1g.10gb", 2),
        (1, 2, "mig-3g.40gb", 1),
    ];
    assert_eq!(groups, expected);
    let jobs = import.workload.jobs.iter();
    let mut sizes: Vec<(&str, u32)> = jobs.map(|job| (job.id.as_str(), job.num_gpus)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [("vision/slices", 2), ("vision/whole", 4)]);
    // One hour of 8 cores on a node with GPUs; the other pod ran where none are.
    assert_eq!(import.workload.cluster.seen.core_hours_without_gpus, 8.0);
}
