//! Jobs of the server: they are suspended and let go by patches, and a toy of the Job controller makes and takes their pods.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use pleach_kubernetes::suspended::maker::OTHERS;
use pleach_kubernetes::{Settings, webhook};
use serde_json::{Value, json};

use super::world::merge;
use super::{World, status, watches};

/// The Job controller's user.
pub const JOBS: &str = "system:serviceaccount:kube-system:job-controller";

impl World {
    /// A Job as the API server makes it: after the webhook.
    pub fn make_job(&mut self, mut job: Value, settings: &Settings) {
        self.admit(&mut job, "batch", "jobs", settings);
        self.version += 1;
        job["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.jobs.push(job);
    }

    /// Applies what the webhook says of an object that is made.
    pub fn admit(&self, object: &mut Value, group: &str, plural: &str, settings: &Settings) {
        let gvk = json!({ "group": group, "version": "v1", "kind": "X" });
        let resource = json!({ "group": group, "version": "v1", "resource": plural });
        let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "kind": gvk, "resource": resource, "operation": "CREATE", "userInfo": { "username": JOBS }, "dryRun": false,
            "name": "x", "namespace": object["metadata"]["namespace"], "object": object } });
        let answer = webhook::review(review.to_string().as_bytes(), settings, true, &self.let_go).unwrap();
        let patch = super::patch_of(&answer);
        for one in patch.as_array().into_iter().flatten() {
            let path = one["path"].as_str().unwrap();
            let (parent, name) = path.rsplit_once('/').unwrap();
            let name = name.replace("~1", "/");
            let parent = object.pointer_mut(parent).unwrap();
            match one["op"].as_str().unwrap() {
                "remove" => drop(parent.as_object_mut().unwrap().remove(&name)),
                _ if name == "-" => parent.as_array_mut().unwrap().push(one["value"].clone()),
                _ => parent[name] = one["value"].clone(),
            }
        }
    }

    /// A merge patch of a Job, of which nothing but `suspend` and our notes may change.
    fn patch_job(&mut self, key: &(String, String), patch: &Value) -> Result<Value, (u16, &'static str)> {
        self.version += 1;
        let version = self.version;
        let is_it =
            |job: &&mut Value| job["metadata"]["namespace"] == *key.0 && job["metadata"]["name"] == *key.1;
        let job = self.jobs.iter_mut().find(is_it).ok_or((404, "jobs not found"))?;
        for name in ["uid", "resourceVersion"] {
            assert!(patch["metadata"][name].is_string(), "no precondition: {patch}");
            if patch["metadata"][name] != job["metadata"][name] {
                return Err((409, "the object has been modified"));
            }
        }
        let only = |map: &Value, names: &[&str]| {
            let mut keys = map.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
            assert!(keys.all(|key| names.contains(&key)), "{patch}");
        };
        only(patch, &["metadata", "spec"]);
        only(&patch["metadata"], &["uid", "resourceVersion", "annotations"]);
        only(
            &patch["metadata"]["annotations"],
            &["pleach/suspended", "pleach/decided"],
        );
        only(&patch["spec"], &["suspend"]);
        // As the admission policy of `guarded` has it.
        if patch["spec"]["suspend"].is_boolean() && patch["spec"]["suspend"] != job["spec"]["suspend"] {
            let is_suspended = patch["spec"]["suspend"] == true;
            let noted = if is_suspended { patch } else { &*job };
            assert!(
                noted["metadata"]["annotations"]["pleach/suspended"].is_string(),
                "{patch}"
            );
            assert!(
                !is_suspended || job["status"]["ready"].as_u64().unwrap_or(0) == 0,
                "{patch}"
            );
        }
        merge(job, patch);
        job["metadata"]["resourceVersion"] = json!(version.to_string());
        Ok(job.clone())
    }

    /// One look of the Job controller: Jobs that are not suspended get the pods that they lack, others lose theirs.
    pub fn run_jobs(&mut self, settings: &Settings) {
        for job in self.jobs.clone() {
            let of = |pod: &Value| pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"];
            let own: Vec<(String, String)> = self
                .pods
                .iter()
                .filter(|(_, pod)| of(pod))
                .map(|(key, _)| key.clone())
                .collect();
            if job["spec"]["suspend"] == true {
                own.iter().for_each(|key| drop(self.pods.remove(key)));
                continue;
            }
            let wanted = job["spec"]["parallelism"].as_u64().unwrap();
            for number in own.len() as u64..wanted {
                let mut pod = self.pod_of(&job, number);
                self.admit(&mut pod, "", "pods", settings);
                self.add_pod(pod);
            }
        }
    }

    fn pod_of(&mut self, job: &Value, number: u64) -> Value {
        self.number += 1;
        let template = job["spec"]["template"].clone();
        let (name, uid) = (job["metadata"]["name"].as_str().unwrap(), &job["metadata"]["uid"]);
        let mut pod = json!({ "metadata": template["metadata"], "spec": template["spec"], "status": { "phase": "Pending" } });
        let meta = &mut pod["metadata"];
        meta["name"] = json!(format!("{name}-{number}-p{}", self.number));
        meta["namespace"] = job["metadata"]["namespace"].clone();
        meta["uid"] = json!(format!("123e4567-e89b-42d3-b456-{:012x}", self.number));
        meta["creationTimestamp"] = json!(super::time(self.now_s.unwrap()));
        meta["labels"]["batch.kubernetes.io/job-name"] = json!(name);
        if job["spec"]["completionMode"] == "Indexed" {
            meta["annotations"]["batch.kubernetes.io/job-completion-index"] = json!(number.to_string());
        }
        meta["ownerReferences"] = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true }]);
        pod
    }
}

/// Objects of a kind that is not Kubernetes' own; 404 where the API server does not have it.
pub async fn others(
    State(world): State<Arc<Mutex<World>>>,
    Path((_, _, plural)): Path<(String, String, String)>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let kind = OTHERS.iter().find(|kind| kind.plural == plural);
    let kind = kind.filter(|kind| world.lock().unwrap().others.contains_key(kind.plural));
    match kind {
        Some(kind) if query.contains_key("watch") => watches::watch(&world, kind.plural, &query),
        Some(kind) => super::list("Thing", world.lock().unwrap().listed(kind.plural, ""), &query),
        None => status(
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
    }
}

pub async fn patch_other(
    State(world): State<Arc<Mutex<World>>>,
    Path((_, _, _, plural, name)): Path<(String, String, String, String, String)>,
    body: String,
) -> Response {
    let patch: Value = serde_json::from_str(&body).unwrap();
    let mut world = world.lock().unwrap();
    let found = world.others.get_mut(&plural).unwrap();
    let object = found
        .iter_mut()
        .find(|one| one["metadata"]["name"] == *name)
        .unwrap();
    assert_eq!(patch["metadata"]["uid"], object["metadata"]["uid"]);
    merge(object, &patch);
    let name = object["metadata"]["name"].clone();
    world.record();
    let object = world.others[&plural]
        .iter()
        .find(|one| one["metadata"]["name"] == name);
    axum::Json(object.unwrap().clone()).into_response()
}

pub async fn patch_job(
    State(world): State<Arc<Mutex<World>>>,
    Path(key): Path<(String, String)>,
    body: String,
) -> Response {
    let patch: Value = serde_json::from_str(&body).unwrap();
    match world.lock().unwrap().patch_job(&key, &patch) {
        Ok(job) => axum::Json(job).into_response(),
        Err((code, why)) => status(code, "Refused", why),
    }
}
