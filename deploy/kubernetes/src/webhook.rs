//! The mutating webhook: which pods get our gate when they are made. A function of the body and nothing else.
//!
//! The namespaces are chosen in the `MutatingWebhookConfiguration`, by the label [`names::DRIVE`]; what the webhook is not asked
//! about, it does not hold. It refuses no pod. Marks that only the controller may write are taken off. Where it is asked about
//! updates too, nobody but the controller and operators takes the gate off or changes a mark: a user could else go ahead of all.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Pod;
use kube::core::admission::{AdmissionRequest, AdmissionReview, Operation};
use serde_json::{Value, json};

use crate::config::Settings;
use crate::names;
use crate::pod;

/// The answer to an `AdmissionReview`, JSON. A controller that is silent holds nobody.
///
/// # Errors
/// A body that is no review of a pod; to be answered with 400.
pub fn review(body: &[u8], settings: &Settings, is_controller_alive: bool) -> Result<Value, String> {
    let review: AdmissionReview<Pod> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let Some(request) = review.request else {
        return Err("an AdmissionReview without a request".into());
    };
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
        (true, _) => patch(&request, settings),
    };
    let mut response = json!({ "uid": request.uid, "allowed": true });
    if !patch.is_empty() {
        let bytes = serde_json::to_vec(&patch).unwrap_or_default();
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(ByteString(bytes));
    }
    Ok(answer(&response))
}

fn answer(response: &Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
}

/// The operations that put marks back which somebody changed who may not; why the update is refused where he takes our gate off.
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
        let path = format!("/metadata/annotations/{}", name.replace('/', "~1"));
        match (of(old), of(new)) {
            (before, after) if before == after => {}
            (None, _) => patch.push(json!({ "op": "remove", "path": path })),
            (Some(before), _) => {
                if new.metadata.annotations.is_none() && patch.is_empty() {
                    patch.push(json!({ "op": "add", "path": "/metadata/annotations", "value": {} }));
                }
                patch.push(json!({ "op": "add", "path": path, "value": before }));
            }
        }
    }
    Ok(patch)
}

fn has_gate(pod: &Pod) -> bool {
    let gates = pod
        .spec
        .iter()
        .flat_map(|spec| spec.scheduling_gates.iter().flatten());
    gates.into_iter().any(|gate| gate.name == names::GATE)
}

/// The operations of the JSON patch; none where the pod is to stay as it is.
fn patch(request: &AdmissionRequest<Pod>, settings: &Settings) -> Vec<Value> {
    let is_pod = request.resource.group.is_empty() && request.resource.resource == "pods";
    let is_made =
        request.operation == Operation::Create && request.sub_resource.as_deref().unwrap_or("").is_empty();
    let Some(object) = request.object.as_ref().filter(|_| is_pod && is_made) else {
        return Vec::new();
    };
    let mut patch = Vec::new();
    for name in [names::DECIDED, names::LEFT] {
        if object
            .metadata
            .annotations
            .as_ref()
            .is_some_and(|all| all.contains_key(name))
        {
            let path = format!("/metadata/annotations/{}", name.replace('/', "~1"));
            patch.push(json!({ "op": "remove", "path": path }));
        }
    }
    if is_to_be_held(object, request.namespace.as_deref(), settings) {
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

fn is_to_be_held(object: &Pod, namespace: Option<&str>, settings: &Settings) -> bool {
    let Some(spec) = &object.spec else { return false };
    let scheduler = spec.scheduler_name.as_deref().unwrap_or("default-scheduler");
    let is_held = has_gate(object);
    let is_bound = spec.node_name.as_deref().is_some_and(|name| !name.is_empty());
    !settings.drive.is_order()
        && settings.drives(namespace.unwrap_or_default())
        && !pod::opts_out(object, settings)
        && settings.scheduler_names.iter().any(|name| name == scheduler)
        && !is_held
        && !is_bound
        && !pod::gpus(spec, settings).is_empty()
}
