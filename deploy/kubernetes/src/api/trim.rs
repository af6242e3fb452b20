//! Takes off nodes and Jobs what no round reads. Pods have more to be said of: [`crate::pod::trim`].

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde_json::Value;

use crate::mark::TEXT_MAX;
use crate::names;
use crate::pod;
use crate::suspended::maker::{Maker, OTHERS};

/// Takes off what no round reads of any object.
pub(super) fn bare(meta: &mut ObjectMeta) {
    (meta.annotations, meta.managed_fields) = (None, None);
}

/// Images and volumes are most of a node, and heartbeats change it every few minutes.
pub(super) fn node(node: &mut Node) {
    bare(&mut node.metadata);
    if let Some(status) = &mut node.status {
        (status.images, status.volumes_in_use, status.volumes_attached) = (None, None, None);
        let conditions = status.conditions.iter_mut().flatten();
        conditions.for_each(|one| one.last_heartbeat_time = None);
    }
}

/// Whether a Job is suspended by us.
pub(super) fn is_held(job: &Job) -> bool {
    let notes = job.metadata.annotations.as_ref();
    notes.is_some_and(|notes| notes.contains_key(names::SUSPENDED))
}

/// Takes off what is not read of an object that may be suspended: all but our notes.
pub(super) fn note(meta: &mut ObjectMeta) {
    let mut notes = meta.annotations.take().unwrap_or_default();
    notes.retain(|name, text| match name.as_str() {
        names::SUSPENDED => text.len() <= names::WORD_MAX,
        name => name == names::DECIDED && text.len() <= TEXT_MAX,
    });
    bare(meta);
    meta.annotations = Some(notes).filter(|notes| !notes.is_empty());
}

/// Of an object of another kind that may be suspended nothing is read without notes of ours, nor once it is over.
pub(super) fn other(object: &mut DynamicObject) {
    note(&mut object.metadata);
    let is_over = Maker::of_other(&OTHERS[0], object).is_over;
    object.metadata.annotations.take_if(|_| is_over);
    if !is_noted(&object.metadata) {
        object.data = Value::Null;
    }
}

/// Whether an object has notes of ours.
pub(super) fn is_noted(meta: &ObjectMeta) -> bool {
    meta.annotations.is_some()
}

/// Of its status what has succeeded is read and whether it is over, of its template what its containers ask for, and of a Job that waits without pods what would be read of these.
pub(super) fn job(job: &mut Job, tenant_label: Option<&str>) {
    note(&mut job.metadata);
    let is_over = Maker::of_job(job).is_over;
    job.metadata.annotations.take_if(|_| is_over);
    let is_noted = is_noted(&job.metadata);
    // The other numbers follow the pods, which are read, and other conditions its `suspend`.
    let read = job.status.take().map(|status| JobStatus {
        conditions: status.conditions.filter(|_| is_over),
        succeeded: status.succeeded,
        ..JobStatus::default()
    });
    job.status = read.filter(|status| *status != JobStatus::default());
    let Some(template) = job.spec.as_mut().map(|spec| &mut spec.template) else {
        return;
    };
    if is_noted {
        let mut of_pods = Pod {
            metadata: template.metadata.take().unwrap_or_default(),
            spec: template.spec.take(),
            status: None,
        };
        pod::trim(&mut of_pods, tenant_label);
        (template.metadata, template.spec) = (Some(of_pods.metadata), of_pods.spec);
        return;
    }
    template.metadata = None;
    let Some(spec) = &mut template.spec else { return };
    let asks = |container: &mut Container| Container {
        name: std::mem::take(&mut container.name),
        resources: container.resources.take(),
        ..Container::default()
    };
    *spec = PodSpec {
        containers: spec.containers.iter_mut().map(asks).collect(),
        ..PodSpec::default()
    };
}
