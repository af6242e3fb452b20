//! What is read beside nodes, pods and Jobs: namespaces, volumes, disruption budgets, rights.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::{Shared, World, list, status, watches};

pub fn routes() -> Router<Arc<Mutex<World>>> {
    Router::new()
        .route("/api/v1/namespaces", get(namespaces))
        .route("/api/v1/namespaces/{ns}/events", post(event))
        .route("/api/v1/persistentvolumeclaims", get(claims))
        .route(
            "/api/v1/namespaces/{ns}/persistentvolumeclaims/{name}",
            get(claim),
        )
        .route("/api/v1/persistentvolumes", get(volumes))
        .route("/api/v1/resourcequotas", get(quotas))
        .route("/api/v1/persistentvolumes/{name}", get(volume))
        .route(
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            get(budgets),
        )
        .route(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            post(review),
        )
}

type Asked = Query<HashMap<String, String>>;

async fn namespaces(State(world): Shared, Query(query): Asked) -> Response {
    assert_eq!(query["labelSelector"], "pleach/drive=true");
    let world = world.lock().unwrap();
    let object = |name: &String| json!({ "metadata": { "name": name } });
    let found = world.labelled.iter().map(object).collect();
    list("Namespace", (found, world.version), &query)
}

async fn quotas(State(world): Shared, Query(query): Asked) -> Response {
    if query.contains_key("watch") {
        return watches::watch(&world, "ResourceQuota", &query);
    }
    let found = world.lock().unwrap().listed("ResourceQuota", "");
    list("ResourceQuota", found, &query)
}

async fn event(
    State(world): Shared,
    Path(ns): Path<String>,
    axum::Json(event): axum::Json<Value>,
) -> Response {
    let mut world = world.lock().unwrap();
    if world.refuses_events {
        return status(403, "Forbidden", "events is forbidden");
    }
    let key = (ns, event["metadata"]["name"].as_str().unwrap().to_owned());
    if world.events.iter().any(|(known, _)| *known == key) {
        return status(409, "AlreadyExists", "events already exists");
    }
    world.events.push((key, event.clone()));
    axum::Json(event).into_response()
}

async fn claims(State(world): Shared, Query(query): Asked) -> Response {
    if query.contains_key("watch") {
        return watches::watch(&world, "PersistentVolumeClaim", &query);
    }
    let found = world.lock().unwrap().listed("PersistentVolumeClaim", "");
    list("PersistentVolumeClaim", found, &query)
}

async fn claim(State(world): Shared, Path((ns, name)): Path<(String, String)>) -> Response {
    one(&world.lock().unwrap().claims, |meta| {
        meta["namespace"] == *ns && meta["name"] == *name
    })
}

async fn volumes(State(world): Shared, Query(query): Asked) -> Response {
    if query.contains_key("watch") {
        return watches::watch(&world, "PersistentVolume", &query);
    }
    list(
        "PersistentVolume",
        world.lock().unwrap().listed("PersistentVolume", ""),
        &query,
    )
}

async fn volume(State(world): Shared, Path(name): Path<String>) -> Response {
    one(&world.lock().unwrap().volumes, |meta| meta["name"] == *name)
}

async fn budgets(State(world): Shared, Path(ns): Path<String>, Query(query): Asked) -> Response {
    let world = world.lock().unwrap();
    let of_space = |budget: &&Value| budget["metadata"]["namespace"] == *ns;
    let found = world.budgets.iter().filter(of_space).cloned().collect();
    list("PodDisruptionBudget", (found, world.version), &query)
}

fn one(objects: &[Value], is_it: impl Fn(&Value) -> bool) -> Response {
    match objects.iter().find(|object| is_it(&object["metadata"])) {
        Some(found) => axum::Json(found.clone()).into_response(),
        None => status(404, "NotFound", "not found"),
    }
}

/// As RBAC of the manifests has it: rights to Leases in their namespace alone.
async fn review(axum::Json(mut review): axum::Json<Value>) -> Response {
    let asked = &review["spec"]["resourceAttributes"];
    let allowed = asked["resource"] != "leases" || asked["namespace"] == "pleach";
    review["status"] = json!({ "allowed": allowed });
    axum::Json(review).into_response()
}
