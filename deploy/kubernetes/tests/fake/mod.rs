//! An API server in memory, over HTTP on loopback, with the semantics of gates, and a toy scheduler and kubelet behind it.
//!
//! A gate can be taken away and never added; a node selector may grow while a pod is gated and never after; UID and resource
//! version in a patch are preconditions. The toy scheduler binds pods without gates to a node that they select and that has
//! the GPUs; the toy kubelet ends them after a while; the toy controller makes a pod anew that was evicted and is owned.

mod around;
mod faults;
pub mod jobs;
pub mod journal;
pub mod watches;
mod world;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use pleach_kubernetes::Settings;
use pleach_kubernetes::api::Cluster;
use serde_json::{Value, json};
pub use world::{World, owned};

use crate::objects::time;

/// The operations of a webhook's answer; null where there are none.
pub fn patch_of(answer: &Value) -> Value {
    match &answer["response"]["patch"] {
        Value::Null => Value::Null,
        text => {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(text.clone()).unwrap();
            serde_json::from_slice(&bytes.0).unwrap()
        }
    }
}

/// The server and what it knows.
pub struct Fake {
    pub world: Arc<Mutex<World>>,
    pub address: SocketAddr,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Fake {
    /// Listens, with a scheduler that looks every 3 ms.
    pub async fn start(world: World) -> Fake {
        let mut fake = Fake::still(world).await;
        let of_kubelet = Arc::clone(&fake.world);
        fake.tasks.push(tokio::spawn(async move {
            loop {
                of_kubelet.lock().unwrap().tick();
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        }));
        fake
    }

    /// Listens; the scheduler looks when [`World::tick`] is called.
    pub async fn still(world: World) -> Fake {
        let world = Arc::new(Mutex::new(world));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(Arc::clone(&world));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Fake {
            world,
            address,
            tasks: vec![server],
        }
    }

    pub fn cluster(&self, settings: &Settings) -> Cluster {
        let url = format!("http://{}", self.address).parse().unwrap();
        Cluster::new(kube::Config::new(url), settings).unwrap()
    }
}

/// What the server answers, over whatever transport.
pub fn router(world: Arc<Mutex<World>>) -> Router {
    Router::new()
        .route("/api/v1/nodes", get(nodes))
        .route("/api/v1/pods", get(pods))
        .route("/apis/batch/v1/jobs", get(jobs))
        .merge(around::routes())
        .route(
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            post(make_lease),
        )
        .route(
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/{name}",
            get(lease).put(put_lease),
        )
        .route(
            "/apis/batch/v1/namespaces/{ns}/jobs/{name}",
            get(job).patch(jobs::patch_job),
        )
        .route("/apis/kueue.x-k8s.io/v1beta2/{plural}", get(of_kueue))
        .route("/apis/scheduling.k8s.io/v1/{plural}", get(of_kueue))
        .route(
            "/apis/kueue.x-k8s.io/v1beta2/namespaces/{ns}/workloads/{name}",
            get(workload).patch(patch_workload),
        )
        .route("/api/v1/namespaces/{ns}/pods/{name}", get(pod).patch(patch))
        .route("/api/v1/namespaces/{ns}/pods/{name}/eviction", post(evict))
        .route("/apis/{group}/{version}/{plural}", get(jobs::others))
        .route(
            "/apis/{group}/{version}/namespaces/{ns}/{plural}/{name}",
            axum::routing::patch(jobs::patch_other),
        )
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&world),
            faults::strike,
        ))
        .with_state(world)
}

type Shared = State<Arc<Mutex<World>>>;

pub fn status(code: u16, reason: &str, message: &str) -> Response {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code });
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

/// A page of a list of a version; the token is the key of its last item, as in etcd, so pods that end between two pages hide no
/// others.
fn list(kind: &str, (mut items, version): (Vec<Value>, u64), query: &HashMap<String, String>) -> Response {
    let key = |item: &Value| {
        let of = |name: &str| item["metadata"][name].as_str().unwrap_or_default();
        format!("{}/{}", of("namespace"), of("name"))
    };
    if let Some(token) = query.get("continue") {
        items.retain(|item| key(item) > *token);
    }
    items.sort_by_key(key);
    let limit: usize = query
        .get("limit")
        .map_or(usize::MAX, |text| text.parse().unwrap());
    let mut metadata = json!({ "resourceVersion": version.max(1).to_string() });
    if items.len() > limit {
        items.truncate(limit);
        metadata["continue"] = json!(items.last().map(key));
    }
    axum::Json(
        json!({ "kind": format!("{kind}List"), "apiVersion": "v1", "metadata": metadata, "items": items }),
    )
    .into_response()
}

async fn nodes(State(world): Shared, Query(query): Query<HashMap<String, String>>) -> Response {
    if query.contains_key("watch") {
        return watches::watch(&world, "Node", &query);
    }
    let pause = world.lock().unwrap().list_pause;
    tokio::time::sleep(pause).await;
    list("Node", world.lock().unwrap().listed("Node", ""), &query)
}

async fn pods(State(world): Shared, Query(query): Query<HashMap<String, String>>) -> Response {
    if query.contains_key("watch") {
        return watches::watch(&world, "Pod", &query);
    }
    let selector = query.get("fieldSelector").map_or("", String::as_str);
    list("Pod", world.lock().unwrap().listed("Pod", selector), &query)
}

async fn jobs(State(world): Shared, Query(query): Query<HashMap<String, String>>) -> Response {
    if query.contains_key("watch") {
        return watches::watch(&world, "Job", &query);
    }
    let mut world = world.lock().unwrap();
    let succeeded = |job: &Value| job["status"]["succeeded"].as_u64().unwrap_or(0);
    let is_of_set = |job: &Value| job["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"].is_string();
    let is_asked = |job: &&Value| {
        let fields = query.get("fieldSelector").map(String::as_str);
        let labels = query.get("labelSelector").map(String::as_str);
        assert!(matches!(fields, None | Some("status.successful=0")), "{query:?}");
        assert!(
            matches!(labels, None | Some("jobset.sigs.k8s.io/jobset-name")),
            "{query:?}"
        );
        (fields.is_none() || succeeded(job) == 0) && (labels.is_none() || is_of_set(job))
    };
    let (mut found, version) = world.listed("Job", "");
    found.retain(|job| is_asked(&job));
    world.num_job_lists += 1;
    world.num_jobs_listed += found.len();
    list("Job", (found, version), &query)
}

async fn job(State(world): Shared, Path((ns, name)): Path<(String, String)>) -> Response {
    let world = world.lock().unwrap();
    let is_it = |job: &&Value| job["metadata"]["namespace"] == *ns && job["metadata"]["name"] == *name;
    match world.jobs.iter().find(is_it) {
        Some(found) => axum::Json(found.clone()).into_response(),
        None => status(404, "NotFound", "jobs not found"),
    }
}

async fn pod(State(world): Shared, Path((ns, name)): Path<(String, String)>) -> Response {
    match world.lock().unwrap().pods.get(&(ns, name)) {
        Some(pod) => axum::Json(pod.clone()).into_response(),
        None => status(404, "NotFound", "pods not found"),
    }
}

async fn of_kueue(
    State(world): Shared,
    Path(plural): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    if query.contains_key("watch") {
        return watches::watch(&world, "PriorityClass", &query);
    }
    let world = world.lock().unwrap();
    let items = match plural.as_str() {
        "workloads" => world.workloads.values().cloned().collect(),
        other => world.of_kueue.get(other).cloned().unwrap_or_default(),
    };
    list("Thing", (items, world.version), &query)
}

async fn lease(State(world): Shared) -> Response {
    match &world.lock().unwrap().lease {
        Some(found) => axum::Json(found.clone()).into_response(),
        None => status(404, "NotFound", "leases not found"),
    }
}

async fn make_lease(State(world): Shared, body: String) -> Response {
    let mut world = world.lock().unwrap();
    match world.lease {
        Some(_) => status(409, "AlreadyExists", "leases already exists"),
        None => axum::Json(world.write_lease(&body)).into_response(),
    }
}

async fn put_lease(State(world): Shared, body: String) -> Response {
    let mut world = world.lock().unwrap();
    let sent: Value = serde_json::from_str(&body).unwrap();
    let of = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
    match &world.lease {
        Some(found) if of(found) == of(&sent) => axum::Json(world.write_lease(&body)).into_response(),
        Some(_) => status(409, "Conflict", "the object has been modified"),
        None => status(404, "NotFound", "leases not found"),
    }
}

async fn workload(State(world): Shared, Path((_, name)): Path<(String, String)>) -> Response {
    match world.lock().unwrap().workloads.get(&name) {
        Some(found) => axum::Json(found.clone()).into_response(),
        None => status(404, "NotFound", "workloads not found"),
    }
}

async fn patch_workload(
    State(world): Shared,
    Path((_, name)): Path<(String, String)>,
    body: String,
) -> Response {
    let patch: Value = serde_json::from_str(&body).unwrap();
    match world.lock().unwrap().patch_workload(&name, &patch) {
        Ok(found) => axum::Json(found).into_response(),
        Err((code, why)) => status(code, "Refused", why),
    }
}

async fn patch(State(world): Shared, Path(key): Path<(String, String)>, body: String) -> Response {
    let patch: Value = serde_json::from_str(&body).unwrap();
    match world.lock().unwrap().patch(&key, &patch) {
        Ok(pod) => axum::Json(pod).into_response(),
        Err((code, why)) => status(code, "Refused", why),
    }
}

async fn evict(
    State(world): Shared,
    Path(key): Path<(String, String)>,
    Query(query): Query<HashMap<String, String>>,
    body: Body,
) -> Response {
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let eviction: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        (&eviction["apiVersion"], &eviction["kind"]),
        (&json!("policy/v1"), &json!("Eviction"))
    );
    let is_dry = query.get("dryRun").map(String::as_str) == Some("All");
    let told = &eviction["deleteOptions"]["dryRun"];
    assert_eq!(is_dry, *told == json!(["All"]), "{query:?} beside {eviction}");
    match world.lock().unwrap().evict(&key, &eviction, is_dry) {
        Ok(()) => status(201, "", "created"),
        Err((code, why)) => status(code, "Refused", why),
    }
}
