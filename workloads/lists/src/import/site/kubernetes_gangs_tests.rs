//! Which recorded pods are one job, shape by shape.

use super::{NodeTable, SiteOptions, import_site};
use crate::Outcome;

/// A pod of 8 GPUs that began at a minute of an hour and ended at another (-1: not known), made a minute before.
fn pod(name: &str, labels: &str, node: &str, [from, to]: [i32; 2], phase: &str, more: &str) -> String {
    let at = |minute: i32| format!("2026-05-04T{:02}:{:02}:00Z", 9 + minute / 60, minute % 60);
    let ended = match to {
        -1 => String::new(),
        to => format!(
            r#", "containerStatuses": [{{"name": "main", "state": {{"terminated": {{"finishedAt": "{}"}}}}}}]"#,
            at(to)
        ),
    };
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{name}", "namespace": "a", "labels": {{{labels}}},
            "creationTimestamp": "{}"}},
        "spec": {{"nodeName": "{node}", {more} "containers": [{{"resources": {{"limits": {{"nvidia.com/gpu": "8"}}}}}}]}},
        "status": {{"phase": "{phase}", "startTime": "{}"{ended}}}}}"#,
        at(from - 1),
        at(from),
    )
}

/// Id, GPUs, run time in minutes, nodes and outcome.
type Shape = (String, u32, f64, String, Outcome);

/// The jobs, and what the report says.
fn jobs(items: &[String]) -> (Vec<Shape>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pods.json");
    let text = format!(r#"{{"apiVersion": "v1", "items": [{}]}}"#, items.join(","));
    std::fs::write(&path, text).unwrap();
    let found = import_site(&path, &SiteOptions::default()).unwrap();
    let jobs = found.workload.jobs.iter().map(|job| {
        let observed = job.observed.as_deref().unwrap();
        let id = job.id.trim_start_matches("a/").to_owned();
        (
            id,
            job.num_gpus,
            job.run_time_s / 60.0,
            observed.nodes.clone(),
            job.outcome,
        )
    });
    let mut jobs: Vec<_> = jobs.collect();
    jobs.sort_by(|a, b| a.0.cmp(&b.0));
    (jobs, found.report.to_string())
}

/// The same without nodes and outcomes.
fn shapes(items: &[String]) -> Vec<(String, u32, f64)> {
    jobs(items)
        .0
        .into_iter()
        .map(|job| (job.0, job.1, job.2))
        .collect()
}

fn job_of(name: &str, parallelism: u32, completions: u32, mode: &str) -> String {
    format!(
        r#"{{"kind": "Job", "metadata": {{"name": "{name}", "namespace": "a", "creationTimestamp": "2026-05-04T08:00:00Z"}},
        "spec": {{"parallelism": {parallelism}, "completions": {completions}, "completionMode": "{mode}", "template": {{"spec":
            {{"containers": [{{"resources": {{"limits": {{"nvidia.com/gpu": "8"}}}}}}]}}}}}},
        "status": {{"startTime": "2026-05-04T08:00:00Z", "completionTime": "2026-05-04T12:00:00Z", "succeeded": {completions}}}}}"#
    )
}

const OF_JOB: &str = r#""batch.kubernetes.io/job-name": "fit""#;

#[test]
fn groups_of_a_leader_worker_set_are_gangs_and_pods_of_a_stateful_set_are_not() {
    let of_group = |index: u32| {
        format!(
            r#""leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": "{index}""#
        )
    };
    let items = [
        pod("vllm-0", &of_group(0), "n1", [10, 110], "Succeeded", ""),
        pod("vllm-0-1", &of_group(0), "n2", [10, 110], "Succeeded", ""),
        pod("vllm-1", &of_group(1), "n3", [20, 80], "Succeeded", ""),
        pod("vllm-1-1", &of_group(1), "n4", [20, 80], "Succeeded", ""),
        pod("serve-0", "", "n5", [10, 70], "Succeeded", ""),
        pod("serve-1", "", "n5", [500, 560], "Succeeded", ""),
    ];
    assert_eq!(
        shapes(&items),
        [
            ("serve-0".into(), 8, 60.0),
            ("serve-1".into(), 8, 60.0),
            ("vllm-0".into(), 16, 100.0),
            ("vllm-1".into(), 16, 60.0)
        ]
    );
}

#[test]
fn a_native_pod_group_is_a_gang_that_was_submitted_when_the_group_was_made() {
    let group = r#""schedulingGroup": {"podGroupName": "train"},"#;
    let items = [
        pod("t-0", "", "n1", [10, 70], "Succeeded", group),
        pod("t-1", "", "n2", [10, 70], "Succeeded", group),
        r#"{"kind": "PodGroup", "metadata": {"name": "train", "namespace": "a", "creationTimestamp": "2026-05-04T08:55:00Z"}}"#.into(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pods.json");
    std::fs::write(
        &path,
        format!(r#"{{"apiVersion": "v1", "items": [{}]}}"#, items.join(",")),
    )
    .unwrap();
    let list = import_site(&path, &SiteOptions::default()).unwrap().workload;
    let [job] = &list.jobs[..] else {
        panic!("{} jobs", list.jobs.len())
    };
    let wait_s = (job.observed.as_deref().unwrap().start - job.submit).as_secs_f64();
    assert_eq!((job.num_gpus, job.run_time_s, wait_s), (16, 3600.0, 900.0));
}

#[test]
fn the_cluster_of_a_ray_job_is_a_gang_under_its_name_that_was_submitted_when_the_ray_job_was_made() {
    let of_cluster = r#""ray.io/cluster": "fit-x2k9q""#;
    let items = [
        pod("fit-x2k9q-head", of_cluster, "n1", [10, 70], "Succeeded", ""),
        pod("fit-x2k9q-workers-0", of_cluster, "n2", [10, 70], "Succeeded", ""),
        r#"{"kind": "RayJob", "metadata": {"name": "fit", "namespace": "a", "creationTimestamp": "2026-05-04T08:55:00Z"},
            "spec": {"entrypoint": "python fit.py", "shutdownAfterJobFinishes": true, "rayClusterSpec": {}},
            "status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "rayClusterName": "fit-x2k9q"}}"#
            .into(),
    ];
    assert_eq!(shapes(&items), [("fit".into(), 16, 60.0)]);
    assert_eq!(shapes(&items[..2]), [("fit-x2k9q".into(), 16, 60.0)]);
}

#[test]
fn tasks_of_a_job_are_jobs_of_their_own_ranks_are_one_and_attempts_of_an_index_are_one() {
    let tasks = [
        pod("fit-a", OF_JOB, "n1", [1, 60], "Succeeded", ""),
        pod("fit-b", OF_JOB, "n2", [1, 60], "Succeeded", ""),
        pod("fit-c", OF_JOB, "n1", [61, 120], "Succeeded", ""),
    ];
    let with = |job: String| [&tasks[..], &[job]].concat();
    let (found, said) = jobs(&with(job_of("fit", 2, 3, "NonIndexed")));
    let found: Vec<_> = found.into_iter().map(|job| (job.0, job.1, job.2)).collect();
    let each = |name: &str| (name.to_owned(), 8, 59.0);
    assert_eq!(found, [each("fit-a"), each("fit-b"), each("fit-c")]);
    assert!(
        said.contains("is not Indexed: it is taken for a job of its own: 3 rows"),
        "{said}"
    );
    // Without its Job nothing says that they are tasks.
    assert_eq!(shapes(&tasks), [("fit".into(), 16, 119.0)]);

    let of_index = |index: u32| format!(r#"{OF_JOB}, "batch.kubernetes.io/job-completion-index": "{index}""#);
    let ranks = [
        pod("fit-0", &of_index(0), "n1", [1, 60], "Failed", ""),
        pod("fit-1", &of_index(1), "n2", [1, 120], "Succeeded", ""),
        pod("fit-0-again", &of_index(0), "n1", [61, 120], "Succeeded", ""),
    ];
    let as_gang = [&ranks[..], &[job_of("fit", 2, 2, "Indexed")]].concat();
    assert_eq!(shapes(&as_gang), [("fit".into(), 16, 119.0)]);
    let as_tasks = [&ranks[..], &[job_of("fit", 2, 5, "Indexed")]].concat();
    assert_eq!(
        shapes(&as_tasks),
        [("fit/0".into(), 8, 119.0), ("fit/1".into(), 8, 119.0)]
    );
}

#[test]
fn a_pod_that_was_evicted_or_made_again_elsewhere_loses_no_gpu_hours_and_adds_no_gpus() {
    let (found, said) = jobs(&[
        pod("fit-x", OF_JOB, "n1", [10, -1], "Failed", ""),
        pod("fit-y", OF_JOB, "n2", [40, 160], "Succeeded", ""),
    ]);
    assert_eq!(found, [("fit".into(), 8, 150.0, "n2".into(), Outcome::Completed)]);
    assert!(
        said.contains("a pod that failed at a time that is not known"),
        "{said}"
    );
    let ray = r#""ray.io/cluster": "rj""#;
    let (found, _) = jobs(&[
        pod("rj-1", ray, "n1", [10, 40], "Failed", ""),
        pod("rj-2", ray, "n2", [41, 130], "Succeeded", ""),
    ]);
    assert_eq!(found, [("rj".into(), 8, 120.0, "n2".into(), Outcome::Completed)]);
    // A rank that failed and was not made again, and a pod alone of which nothing more is known.
    let (found, _) = jobs(&[
        pod("rj-1", ray, "n1", [10, -1], "Failed", ""),
        pod("rj-2", ray, "n2", [10, 40], "Succeeded", ""),
    ]);
    assert_eq!(found, [("rj".into(), 16, 30.0, "n1,n2".into(), Outcome::Failed)]);
}

#[test]
fn names_that_two_owners_share_are_two_jobs() {
    let items = [
        pod("x", r#""ray.io/cluster": "llm""#, "n1", [10, 40], "Succeeded", ""),
        pod(
            "y",
            r#""jobset.sigs.k8s.io/jobset-name": "llm""#,
            "n2",
            [10, 50],
            "Succeeded",
            "",
        ),
    ];
    let found = shapes(&items);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn sidecars_run_beside_the_others_and_init_containers_count_by_the_largest() {
    let one = r#"{"resources": {"limits": {"nvidia.com/gpu": "1"}}"#;
    let sidecar = format!(r#""initContainers": [{one}, "restartPolicy": "Always"}}],"#);
    let converter = r#""initContainers": [{"resources": {"limits": {"nvidia.com/gpu": "16"}}}],"#;
    let items = [
        pod("sidecar", "", "n1", [10, 70], "Succeeded", &sidecar),
        pod("converter", "", "n1", [80, 140], "Succeeded", converter),
    ];
    assert_eq!(
        shapes(&items),
        [("converter".into(), 16, 60.0), ("sidecar".into(), 9, 60.0)]
    );
}

#[test]
fn nodes_are_read_in_every_form_of_a_quantity() {
    let node = |name: &str, cpu: &str, memory: &str| {
        format!(
            r#"{{"kind": "Node", "metadata": {{"name": "{name}"}}, "status": {{"capacity":
            {{"cpu": "{cpu}", "memory": "{memory}", "nvidia.com/gpu": "8"}}}}}}"#
        )
    };
    let nodes = [
        node("n1", "96", "1.5Ti"),
        node("n2", "9.6k", "0.5Pi"),
        node("n3", "95500m", "1610612736Ki"),
        node("n4", "1e2", "1e12"),
        node("n5", "many", "-1"),
    ];
    let text = format!(r#"{{"apiVersion": "v1", "items": [{}]}}"#, nodes.join(","));
    let (cluster, notes) = NodeTable::of_text(&text).unwrap().cluster().unwrap();
    let groups = cluster.node_groups.iter();
    let groups: Vec<_> = groups.map(|group| (group.cpu_cores, group.memory_gib)).collect();
    assert_eq!(
        groups[..4],
        [
            (96.0, 1536.0),
            (9600.0, 524_288.0),
            (95.5, 1536.0),
            (100.0, 931.0)
        ]
    );
    let notes = notes.join("\n");
    assert!(
        notes.contains("cores are not understood") && notes.contains("memory is not understood"),
        "{notes}"
    );
}

#[test]
fn pods_name_the_scheduler_that_placed_them_where_all_name_one_that_is_known() {
    use pleach_scheduler::cluster_spec::SiteScheduler::{Kubernetes, KubernetesGangs};
    let (own, other) = (
        r#""schedulerName": "default-scheduler","#,
        r#""schedulerName": "volcano","#,
    );
    let native = r#""schedulerName": "default-scheduler", "schedulingGroup": {"podGroupName": "train"},"#;
    let queued = r#""kueue.x-k8s.io/queue-name": "q""#;
    let scheduler = |pods: &[(&str, &str)]| {
        let number = pods.iter().zip(10..);
        let item = |((labels, more), from): (&(&str, &str), i32)| {
            pod(
                &format!("p-{from}"),
                labels,
                "n1",
                [from, from + 1],
                "Succeeded",
                more,
            )
        };
        let items: Vec<String> = number.map(item).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pods.json");
        std::fs::write(
            &path,
            format!(r#"{{"apiVersion": "v1", "items": [{}]}}"#, items.join(",")),
        )
        .unwrap();
        let found = import_site(&path, &SiteOptions::default()).unwrap();
        found.workload.cluster.seen.scheduler
    };
    assert_eq!(scheduler(&[("", own), ("", own)]), Some(Kubernetes));
    assert_eq!(scheduler(&[("", own), ("", native)]), Some(KubernetesGangs));
    for others in [("", other), (queued, own), ("", "")] {
        assert_eq!(scheduler(&[("", own), others]), None, "{others:?}");
    }
}
