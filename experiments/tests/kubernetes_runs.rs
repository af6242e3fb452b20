//! `pleach run` on Kubernetes, from a dump to files to apply: a site whose kube-scheduler spreads pods over all nodes, and one whose
//! Kueue lends nothing between its queues. Dumps are written here, of what the site's own scheduler made of a list.

use std::path::Path;

use pleach_dealing::kubernetes::Strategy;
use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_env::{SimConfig, simulate_planner};
use pleach_experiments::decide::{Decided, Decision, Site, SiteConfig, decide};
use pleach_experiments::door::DOOR;
use pleach_experiments::kube_scheduler;
use pleach_experiments::progress::Watcher;
use pleach_experiments::twin::Trust;
use pleach_scheduler::cluster_spec::{ClusterSpec, Resources, Tasks, TenantSpec};
use pleach_scheduler::{ModelClass, Time};
use serde_json::{Value, json};

const NODES: usize = 4;
const HOUR_S: f64 = 3600.0;
const DAY_S: f64 = 24.0 * HOUR_S;
const TEAMS: [&str; 2] = ["team-a", "team-b"];

/// A job of one pod: its team, when it was asked for, GPUs, run time, s.
type Asked = (u16, f64, u32, f64);

/// Draws of 0 to 1: Knuth's linear congruential generator.
fn draws() -> impl FnMut() -> f64 {
    let mut state = 5_u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn list(mut asked: Vec<Asked>) -> Workload {
    asked.sort_by(|one, other| one.1.total_cmp(&other.1));
    let job = |(number, (tenant, at_s, gpus, run_s)): (usize, &Asked)| JobSpec {
        tenant: *tenant,
        observed: Some(Box::new(Observed {
            start: Time::ZERO,
            partition: "q".into(),
            ..Observed::default()
        })),
        resources: Resources {
            tasks: Tasks::of(*gpus as u8),
            ..Resources::WHOLE_GPU
        },
        ..JobSpec::new(
            format!("j{number}"),
            Time::from_secs_f64(at_s.floor()),
            *gpus,
            run_s.floor(),
        )
    };
    Workload {
        name: "asked".into(),
        cluster: ClusterSpec {
            tenants: TEAMS
                .map(|name| TenantSpec {
                    name: name.into(),
                    quota_gpus: 16,
                })
                .to_vec(),
            ..ClusterSpec::uniform(NODES as u32, 8, NODES as u32)
        },
        classes: vec![ModelClass::default()],
        jobs: asked.iter().enumerate().map(job).collect(),
    }
}

/// A time as the API server writes it, of a year that begins on day 0.
fn stamp(at_s: f64) -> String {
    let (mut day, second, mut month) = (at_s as u64 / 86_400 + 1, at_s as u64 % 86_400, 1);
    for days in [31, 28, 31, 30, 31] {
        if day > days {
            (day, month) = (day - days, month + 1);
        } else {
            break;
        }
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z",
        second % 60
    )
}

/// What `kubectl get jobs,pods -A -o json` and `kubectl get nodes -o json` print of a list under the site's own scheduler.
fn write_dump(folder: &Path, list: &Workload, own: &str, labels: &Value) {
    let own = DOOR.open_one(&folder.join(own).display().to_string()).unwrap();
    let sim = SimConfig {
        record_segments: true,
        ..SimConfig::default()
    };
    let result = simulate_planner(list, &sim, own.make_planner().unwrap().as_mut()).unwrap();
    let mut items: Vec<Value> = Vec::new();
    // Jobs run once, and a segment is all of it.
    for segment in &result.segments {
        let spec = &list.jobs[segment.job as usize];
        let (name, namespace) = (spec.id.as_str(), TEAMS[usize::from(spec.tenant)]);
        let gpus = spec.num_gpus.to_string();
        let made = stamp(spec.submit.as_secs_f64());
        let [began, ended] = [segment.from_s, segment.to_s].map(stamp);
        let container = json!({"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}});
        let mut of_pod = labels.clone();
        of_pod["batch.kubernetes.io/job-name"] = name.into();
        items.push(json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": made, "labels": labels},
            "spec": {"parallelism": 1, "template": {"spec": {"containers": [container]}}},
            "status": {"startTime": began, "completionTime": ended, "succeeded": 1}}));
        items.push(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{name}-x"), "namespace": namespace, "creationTimestamp": made, "labels": of_pod},
            "spec": {"schedulerName": "default-scheduler", "nodeName": format!("n{}", segment.slices[0].node), "containers": [container]},
            "status": {"phase": "Succeeded", "startTime": began,
                "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": ended}}}]}}));
    }
    let node = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{number}")},
            "status": {"capacity": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi"}}})
    };
    let write = |name: &str, items: Vec<Value>| {
        let text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        std::fs::write(folder.join(name), text).unwrap();
    };
    write("objects.json", items);
    write("nodes.json", (0..NODES).map(node).collect());
}

/// What a run says of the dump in a folder.
fn decided(folder: &Path, own: &str) -> (Decided, String) {
    let text = format!("jobs = 'objects.json'\nnodes = 'nodes.json'\n{own}\n[search]\nsimulations = 0\n");
    std::fs::write(folder.join("site.toml"), text).unwrap();
    let config = SiteConfig::read(&folder.join("site.toml")).unwrap();
    let (run, watcher) = (folder.join("run"), Watcher::silent());
    let mut said = String::new();
    let found = decide(&Site::new(&config, &run, &watcher), &mut |line| {
        said += line;
        said.push('\n');
        Ok(())
    })
    .unwrap();
    println!("{said}\n{}\n{:?}", found.verdict.line(), found.shadow);
    (found, said)
}

/// What every such run has to end in: the site's own policy is played and believed, and a change of its settings goes on.
fn ends_in(found: &Decided, said: &str, own: &str, change: &str) {
    assert_eq!(found.twin.policy, own, "{said}");
    assert!(
        matches!(found.twin.trust, Some(Trust::Close | Trust::Roughly)),
        "{said}"
    );
    let jct = |name: &str| found.compared.row(name).unwrap().avg_jct_s;
    assert!(jct(change) < 0.9 * jct(own), "{said}");
    assert_eq!(
        (found.verdict.decision, found.verdict.policy.as_deref()),
        (Decision::Deploy, Some(change)),
        "{said}"
    );
}

#[test]
fn a_site_whose_scheduler_spreads_pods_is_told_to_pack_them_by_a_file_of_its_scheduler() {
    let folder = tempfile::tempdir().unwrap();
    // By day pods of one GPU lie on all nodes, and pods of a whole node wait until the evening.
    let (mut unit, mut asked) = (draws(), Vec::new());
    for day in 0..36 {
        let at_s = |hour: f64| f64::from(day) * DAY_S + hour * HOUR_S;
        asked.extend((0..40).map(|_| (0, at_s(8.0 + 10.0 * unit()), 1, (1.0 + 3.0 * unit()) * HOUR_S)));
        asked.extend((0..6).map(|_| (1, at_s(8.0 + 10.0 * unit()), 8, (0.5 + unit()) * HOUR_S)));
    }
    let own = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    std::fs::write(folder.path().join("kube-scheduler.yaml"), own).unwrap();
    write_dump(folder.path(), &list(asked), "kube-scheduler.yaml", &json!({}));
    let (found, said) = decided(folder.path(), "kube_scheduler = 'kube-scheduler.yaml'");
    ends_in(&found, &said, "kubernetes", "most-allocated");
    let file = folder.path().join("run/change.yaml");
    assert_eq!(
        kube_scheduler::read(&file).unwrap().scoring.strategy,
        Strategy::MostAllocated
    );
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("type: MostAllocated") && !page.contains("First as a shadow"));
}

#[test]
fn a_site_whose_queues_lend_nothing_is_told_to_let_them_borrow_by_objects_to_apply() {
    let folder = tempfile::tempdir().unwrap();
    // The two teams take turns by the day: one's quota is idle while the other's jobs wait for theirs.
    let (mut unit, mut asked) = (draws(), Vec::new());
    for day in 0..36 {
        let at_s = f64::from(day) * DAY_S + 8.0 * HOUR_S;
        let team = (day % 2) as u16;
        asked.extend((0..16).map(|_| (team, at_s + HOUR_S * unit(), 4, (1.8 + 0.4 * unit()) * HOUR_S)));
    }
    let queue = |name: &str| {
        format!(
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: {name}, uid: u, resourceVersion: \"7\"}}\n\
             spec:\n  cohortName: all\n  namespaceSelector: {{}}\n  resourceGroups:\n  - coveredResources: [nvidia.com/gpu]\n    flavors:\n    \
             - name: any\n      resources: [{{name: nvidia.com/gpu, nominalQuota: 16, borrowingLimit: 0}}]\n---\n\
             apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{name: q, namespace: {name}}}\nspec: {{clusterQueue: {name}}}\n---\n"
        )
    };
    let own = TEAMS.map(queue).concat()
        + "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: any}\nspec: {}\n";
    std::fs::write(folder.path().join("kueue.yaml"), own).unwrap();
    let labels = json!({"kueue.x-k8s.io/queue-name": "q"});
    write_dump(folder.path(), &list(asked), "kueue.yaml", &labels);
    let (found, said) = decided(folder.path(), "kueue = 'kueue.yaml'");
    ends_in(&found, &said, "kueue", "borrowing");
    // The ClusterQueues alone, without what the API server keeps of them.
    let file = folder.path().join("run/change.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("# kubectl apply -f") && !text.contains("resourceVersion"),
        "{text}"
    );
    assert_eq!(text.matches("nominalQuota: 16").count(), 2, "{text}");
    assert!(!text.contains("borrowingLimit"), "{text}");
}
