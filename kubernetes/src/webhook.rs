//! The mutating webhook: which pods get our gate when they are made. A function of the body and nothing else.
//!
//! The namespaces are chosen in the `MutatingWebhookConfiguration`, by the label [`names::DRIVE`]; what the webhook is not asked
//! about, it does not hold. It refuses no pod. Marks that only the controller may write are taken off.

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
    let patch = match is_controller_alive {
        true => patch(&request, settings),
        false => Vec::new(),
    };
    let mut response = json!({ "uid": request.uid, "allowed": true });
    if !patch.is_empty() {
        let bytes = serde_json::to_vec(&patch).unwrap_or_default();
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(ByteString(bytes));
    }
    Ok(json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response }))
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
    let is_held = spec
        .scheduling_gates
        .iter()
        .flatten()
        .any(|gate| gate.name == names::GATE);
    let is_bound = spec.node_name.as_deref().is_some_and(|name| !name.is_empty());
    !settings.drive.is_order()
        && settings.drives(namespace.unwrap_or_default())
        && pod::word(object, names::DRIVE) != Some("false")
        && settings.scheduler_names.iter().any(|name| name == scheduler)
        && !is_held
        && !is_bound
        && !pod::gpus(spec, settings).is_empty()
}
