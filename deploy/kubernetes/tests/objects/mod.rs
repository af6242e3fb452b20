//! Objects of the API server for tests, as it writes them.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use pleach_kubernetes::Settings;
use pleach_kubernetes::mark::{Decided, Key};
use pleach_kubernetes::observe::Lists;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// When lists are read, Unix time, s.
pub const NOW_S: i64 = 1_795_000_000;

/// Default settings, with a key of marks.
pub fn settings() -> Settings {
    Settings {
        marks: Key::of(b"the key of all tests"),
        ..Settings::default()
    }
}

/// The annotation that a controller with that key writes on a pod.
pub fn mark(pod: &Value, at_s: i64, seat: &str, seats: &[(&str, u32)]) -> String {
    let seats = seats.iter().map(|(unit, num)| ((*unit).to_owned(), *num));
    let mark = Decided {
        at_s,
        seat: seat.to_owned(),
        seats: seats.collect(),
        by: "sjf".into(),
    };
    mark.text(pod["metadata"]["uid"].as_str().unwrap(), &settings().marks)
}

/// A pod that a controller with that key let go 5 s ago.
pub fn let_go(pod: &Value, seat: &str, seats: &[(&str, u32)]) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["annotations"]["pleach/decided"] = json!(mark(&pod, NOW_S - 5, seat, seats));
    pod["spec"]["schedulingGates"] = json!([]);
    pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": seat });
    pod
}

/// A time as the API server writes it.
pub fn time(unix_s: i64) -> String {
    Timestamp::from_second(unix_s).unwrap().to_string()
}

/// A UUID made from a name.
pub fn uid(name: &str) -> String {
    let number = name.bytes().fold(7_u64, |sum, byte| {
        sum.wrapping_mul(1_099_511_628_211) ^ u64::from(byte)
    });
    format!("123e4567-e89b-42d3-a456-{:012x}", number & 0xffff_ffff_ffff)
}

/// A node with 64 CPUs, 512 GiB and A100s.
pub fn node(name: &str, gpus: u32) -> Value {
    json!({
        "metadata": { "name": name, "uid": uid(name), "resourceVersion": "1", "labels": {
            "kubernetes.io/hostname": name, "nvidia.com/gpu.product": "A100-SXM4-80GB" } },
        "spec": {},
        "status": {
            "allocatable": { "cpu": "64", "memory": "512Gi", "nvidia.com/gpu": gpus.to_string() },
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

/// A pod of namespace `team` that our gate holds and that came 100 s ago.
pub fn pod(name: &str, gpus: u32) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "team", "uid": uid(name), "resourceVersion": "1",
            "creationTimestamp": time(NOW_S - 100) },
        "spec": {
            "containers": [{ "name": "main", "image": "train:1", "resources": {
                "requests": { "cpu": "4", "memory": "16Gi" },
                "limits": { "nvidia.com/gpu": gpus.to_string() } } }],
            "schedulerName": "default-scheduler",
            "schedulingGates": [{ "name": "pleach/hold" }],
        },
        "status": { "phase": "Pending" },
    })
}

/// An Indexed Job of namespace `team` with all its pods at once.
pub fn job(name: &str, pods: u32, labels: &Value) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "team", "uid": uid(name), "labels": labels,
            "creationTimestamp": time(NOW_S - 200) },
        "spec": {
            "completionMode": "Indexed", "completions": pods, "parallelism": pods,
            "template": { "spec": { "containers": [{ "name": "main", "resources": {
                "limits": { "nvidia.com/gpu": "2" } } }] } },
        },
    })
}

/// Lists of objects.
pub fn lists(nodes: &[Value], pods: &[Value], jobs: &[Value]) -> Lists {
    fn read<T: DeserializeOwned>(list: &[Value]) -> Vec<Arc<T>> {
        let read = |value: &Value| Arc::new(serde_json::from_value(value.clone()).unwrap());
        list.iter().map(read).collect()
    }
    Lists {
        nodes: read(nodes),
        pods: read(pods),
        jobs: read(jobs),
        ..Lists::default()
    }
}
