//! The mutating webhook: which pods get our gate when they are made, and which Jobs are suspended then. A function of the body, and of
//! the places that are decided for pods to come.
//!
//! The namespaces are chosen in the `MutatingWebhookConfiguration`, by the label [`names::DRIVE`]; what the webhook is not asked
//! about, it does not hold. It refuses no pod. Marks that only the controller may write are taken off. Where it is asked about
//! updates too, only the controller and operators take the gate off or change a mark: a user could else go ahead of all.

use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionReview, Operation};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::config::Settings;
use crate::let_go::{LetGo, Place};
use crate::names;
use crate::pod::{self, has_gate};
use crate::suspended;
use crate::suspended::maker::{JOB, Kind, Maker};

/// Where annotations are.
const NOTES: &str = "/metadata/annotations";

/// As much of a review as says what it is of.
#[derive(Deserialize)]
struct Asked {
    request: Option<AskedFor>,
}

#[derive(Deserialize)]
struct AskedFor {
    resource: Asking,
}

#[derive(Deserialize)]
struct Asking {
    group: String,
    resource: String,
}

/// The answer to an `AdmissionReview`, JSON. A controller that is silent holds no pod.
///
/// # Errors
/// A body that is no review of a pod or a Job; to be answered with 400.
pub fn review(
    body: &[u8],
    settings: &Settings,
    is_controller_alive: bool,
    let_go: &LetGo,
) -> Result<Value, String> {
    let asked: Asked = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let of = asked.request.map(|request| request.resource);
    if let Some(kind) = of.and_then(|of| Kind::of(&of.group, &of.resource)) {
        let how = (settings, is_controller_alive);
        return match *kind == JOB {
            true => Ok(made_by(&read::<Job>(body)?, kind, &|job| Maker::of_job(job), how)),
            false => {
                let request = read::<DynamicObject>(body)?;
                Ok(made_by(
                    &request,
                    kind,
                    &|object| Maker::of_other(kind, object),
                    how,
                ))
            }
        };
    }
    let request = read::<Pod>(body)?;
    let patch = match (is_controller_alive, &request.operation) {
        (false, _) => Vec::new(),
        (true, Operation::Update) => match updated(&request, settings) {
            Ok(patch) => patch,
            Err(reason) => {
                let status = json!({ "code": 403, "reason": "Forbidden", "message": reason });
                let response = json!({ "uid": request.uid, "allowed": false, "status": status });
                return Ok(answer(&response));
            }
        },
        (true, _) => patch(&request, settings, let_go),
    };
    Ok(patched(&request.uid, &patch))
}

fn read<K>(body: &[u8]) -> Result<AdmissionRequest<K>, String>
where
    K: Resource + DeserializeOwned,
{
    let review: AdmissionReview<K> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    review
        .request
        .ok_or_else(|| "an AdmissionReview without a request".into())
}

/// The answer that allows it, with these changes.
fn patched(uid: &str, patch: &[Value]) -> Value {
    let mut response = json!({ "uid": uid, "allowed": true });
    if !patch.is_empty() {
        let bytes = serde_json::to_vec(&patch).unwrap_or_default();
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(ByteString(bytes));
    }
    answer(&response)
}

fn answer(response: &Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

/// The operations that put marks back which a user without the right has changed; an error where such a user takes our gate off.
fn updated(request: &AdmissionRequest<Pod>, settings: &Settings) -> Result<Vec<Value>, String> {
    let user = &request.user_info;
    let is_releaser = |name: &String| {
        user.username.as_ref() == Some(name) || user.groups.iter().flatten().any(|group| group == name)
    };
    let is_pod = request.resource.group.is_empty() && request.resource.resource == "pods";
    let (true, Some(old), Some(new)) = (is_pod, &request.old_object, &request.object) else {
        return Ok(Vec::new());
    };
    let is_driven = settings.drives(request.namespace.as_deref().unwrap_or_default());
    if !is_driven || settings.releasers.iter().any(is_releaser) {
        return Ok(Vec::new());
    }
    if has_gate(old) && !has_gate(new) {
        return Err(format!(
            "the scheduling gate {} is taken off by its controller (releasers of its settings)",
            names::GATE
        ));
    }
    let mut patch = Vec::new();
    for name in [names::DECIDED, names::LEFT] {
        let of = |pod: &Pod| pod.metadata.annotations.as_ref()?.get(name).cloned();
        match (of(old), of(new)) {
            (before, after) if before == after => {}
            (None, _) => patch.extend(without(&new.metadata, name)),
            (Some(before), _) => {
                let is_there = new.metadata.annotations.is_some() || !patch.is_empty();
                patch.extend(entry(is_there, NOTES, name, &before));
            }
        }
    }
    Ok(patch)
}

/// The operation that takes an annotation off; none where it is not there.
fn without(meta: &ObjectMeta, name: &str) -> Option<Value> {
    let path = format!("{NOTES}/{}", name.replace('/', "~1"));
    let is_there = meta.annotations.as_ref()?.contains_key(name);
    is_there.then(|| json!({ "op": "remove", "path": path }))
}

/// The object that is made by a request; none of other requests.
fn made<'a, K: Resource>(request: &'a AdmissionRequest<K>, resource: &str) -> Option<&'a K> {
    let is_it = request.resource.resource == resource
        && request.operation == Operation::Create
        && request.sub_resource.as_deref().unwrap_or("").is_empty();
    request.object.as_ref().filter(|_| is_it)
}

/// The answer to an object that makes pods: it is suspended, and that it was not its user is noted. Notes of others are taken off.
fn made_by<'a, K: Resource>(
    request: &'a AdmissionRequest<K>,
    kind: &Kind,
    maker: &dyn Fn(&'a K) -> Maker<'a>,
    (settings, is_controller_alive): (&Settings, bool),
) -> Value {
    let object = made(request, kind.plural).filter(|_| is_controller_alive);
    let Some(maker) = object.map(maker) else {
        return patched(&request.uid, &[]);
    };
    let meta = maker.meta;
    let notes = [names::DECIDED, names::SUSPENDED].into_iter();
    let mut patch: Vec<Value> = notes.filter_map(|name| without(meta, name)).collect();
    let namespace = request.namespace.as_deref().unwrap_or_default();
    if suspended::is_to_be_suspended(&maker, namespace, settings) {
        patch.extend(entry(meta.annotations.is_some(), NOTES, names::SUSPENDED, "0"));
        let within = format!("/{}", kind.within.join("/"));
        if !maker.has_place() {
            patch.push(json!({ "op": "add", "path": within, "value": {} }));
        }
        patch.push(json!({ "op": "add", "path": format!("{within}/suspend"), "value": true }));
    }
    patched(&request.uid, &patch)
}

/// The operations of the JSON patch; none where the pod is to stay as it is.
fn patch(request: &AdmissionRequest<Pod>, settings: &Settings, let_go: &LetGo) -> Vec<Value> {
    let Some(object) = made(request, "pods").filter(|_| request.resource.group.is_empty()) else {
        return Vec::new();
    };
    let notes = [names::DECIDED, names::LEFT].into_iter();
    let mut patch: Vec<Value> = notes.filter_map(|name| without(&object.metadata, name)).collect();
    let namespace = request.namespace.as_deref().unwrap_or_default();
    if pod::is_to_be_held(object, namespace, settings) {
        let user = request.user_info.username.as_deref().filter(|_| !request.dry_run);
        if let Some(place) = let_go.place(object, user, settings) {
            patch.extend(to(object, &place));
            return patch;
        }
        let gate = json!({ "name": names::GATE });
        let has_gates = object
            .spec
            .as_ref()
            .is_some_and(|spec| spec.scheduling_gates.is_some());
        patch.push(match has_gates {
            true => json!({ "op": "add", "path": "/spec/schedulingGates/-", "value": gate }),
            false => json!({ "op": "add", "path": "/spec/schedulingGates", "value": [gate] }),
        });
    }
    patch
}

/// The operations that send a pod to its place.
fn to(pod: &Pod, place: &Place) -> impl Iterator<Item = Value> {
    let selector = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    let mark = entry(
        pod.metadata.annotations.is_some(),
        NOTES,
        names::DECIDED,
        &place.mark,
    );
    let node = entry(
        selector.is_some(),
        "/spec/nodeSelector",
        names::HOSTNAME,
        &place.hostname,
    );
    mark.chain(node)
}

/// The operations that write an entry of a map, which may not be there yet.
fn entry(is_there: bool, map: &str, name: &str, value: &str) -> impl Iterator<Item = Value> + use<> {
    let made = (!is_there).then(|| json!({ "op": "add", "path": map, "value": {} }));
    let path = format!("{map}/{}", name.replace('/', "~1"));
    made.into_iter()
        .chain([json!({ "op": "add", "path": path, "value": value })])
}
