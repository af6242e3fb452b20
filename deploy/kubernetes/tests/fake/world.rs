//! The state of the server, and what schedulers, kubelets and Job controllers do to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pleach_kubernetes::let_go::LetGo;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Objects, and what happened to them.
#[derive(Default)]
pub struct World {
    pub nodes: BTreeMap<String, Value>,
    pub pods: BTreeMap<(String, String), Value>,
    pub jobs: Vec<Value>,
    /// The one Lease that there is.
    pub lease: Option<Value>,
    /// Kueue's workloads by name, and its other objects by their plural.
    pub workloads: BTreeMap<String, Value>,
    pub of_kueue: BTreeMap<String, Vec<Value>>,
    /// Workloads by name and priorities, as they were written.
    pub ranked: Vec<(String, i64)>,
    /// Workloads that Kueue writes into just before their next patch: why they wait.
    pub told: BTreeSet<String>,
    /// How long a pod runs, ms, by its annotation `life-ms`, else this.
    pub life_ms: u64,
    /// Every so many requests one fails; 0: none.
    pub fault_every: u64,
    pub num_requests: u64,
    pub num_writes: u64,
    /// Sees each patch of a pod: the pod before, and as it would be.
    pub judge: Option<fn(&Value, &Value)>,
    /// What watches show, and what goes wrong with them.
    pub journal: super::journal::Journal,
    /// Pages of nodes, pods and volumes that were asked for.
    pub num_lists: u64,
    /// Pages of Jobs that were asked for.
    pub num_job_lists: u64,
    pub num_jobs_listed: usize,
    /// The request at which the controller is to be killed.
    pub kill_at: Option<u64>,
    pub kill: Arc<Notify>,
    /// UIDs and nodes in the order of binding.
    pub binds: Vec<(String, String)>,
    /// UIDs whose gate was lifted.
    pub lifted: Vec<String>,
    pub num_evicted: u64,
    /// Whether controllers make a pod anew when it begins to end, as those of Jobs do, and not when it has ended.
    pub makes_anew_at_once: bool,
    /// Pods that a disruption budget keeps.
    pub budgeted: BTreeSet<String>,
    /// Disruption budgets, claims and volumes as objects, and namespaces with the label that the webhook looks for.
    pub budgets: Vec<Value>,
    pub claims: Vec<Value>,
    /// Objects of kinds that are not Kubernetes' own, by their plural.
    pub others: BTreeMap<String, Vec<Value>>,
    /// Quotas of namespaces.
    pub quotas: Vec<Value>,
    pub volumes: Vec<Value>,
    pub labelled: BTreeSet<String>,
    /// Events by namespace and name, in the order in which they came, and whether none may be made.
    pub events: Vec<((String, String), Value)>,
    pub refuses_events: bool,
    /// Nodes that alone take pods whose names begin so, for a reason that no object shows.
    pub takes: BTreeMap<String, Vec<String>>,
    /// How long the list of nodes takes.
    pub list_pause: Duration,
    /// Pods that vanish when they are patched next.
    pub vanish: BTreeSet<String>,
    /// The time of the API server, Unix, s, where pods are to be bound and made with one.
    pub now_s: Option<i64>,
    pub version: u64,
    pub number: u64,
    /// Places that the webhook knows of; none: all pods get the gate.
    pub let_go: LetGo,
    pub ends: BTreeMap<String, Instant>,
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn gates(pod: &Value) -> Vec<String> {
    let list = pod["spec"]["schedulingGates"].as_array();
    list.into_iter()
        .flatten()
        .map(|gate| text(gate, "/name").to_owned())
        .collect()
}

fn gpus(pod: &Value) -> u32 {
    let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
    limits["nvidia.com/gpu"]
        .as_str()
        .map_or(0, |text| text.parse().unwrap())
}

/// A pod that a controller owns.
pub fn owned(mut pod: Value) -> Value {
    pod["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true }]);
    pod
}

impl World {
    pub fn add_node(&mut self, node: Value) {
        self.nodes.insert(text(&node, "/metadata/name").to_owned(), node);
    }

    pub fn add_pod(&mut self, mut pod: Value) {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let key = (
            text(&pod, "/metadata/namespace").to_owned(),
            text(&pod, "/metadata/name").to_owned(),
        );
        assert!(self.pods.insert(key, pod).is_none(), "two pods of one name");
    }

    /// A merge patch of a pod.
    pub fn patch(&mut self, key: &(String, String), patch: &Value) -> Result<Value, (u16, &'static str)> {
        if self.vanish.remove(&key.1) {
            self.pods.remove(key);
        }
        let old = self.pods.get(key).ok_or((404, "pods not found"))?.clone();
        for name in ["uid", "resourceVersion"] {
            let wanted = &patch["metadata"][name];
            if !wanted.is_null() && *wanted != old["metadata"][name] {
                return Err((409, "the object has been modified"));
            }
        }
        let mut new = old.clone();
        merge(&mut new, patch);
        let (before, after) = (gates(&old), gates(&new));
        if after.iter().any(|gate| !before.contains(gate)) {
            return Err((422, "a gate can only be removed"));
        }
        let none = json!({});
        let selector = |pod: &Value| pod["spec"].get("nodeSelector").unwrap_or(&none).clone();
        let (had, has) = (selector(&old), selector(&new));
        if had != has {
            let kept = had
                .as_object()
                .unwrap()
                .iter()
                .all(|(key, value)| has.get(key) == Some(value));
            if before.is_empty() || !kept {
                return Err((422, "the node selector is immutable"));
            }
        }
        self.judge.iter().for_each(|judge| judge(&old, &new));
        self.version += 1;
        new["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if before.iter().any(|gate| gate == "pleach/hold") && !after.iter().any(|gate| gate == "pleach/hold")
        {
            self.lifted.push(text(&new, "/metadata/uid").to_owned());
        }
        self.pods.insert(key.clone(), new.clone());
        self.note_patch(old, new.clone());
        Ok(new)
    }

    pub fn write_lease(&mut self, body: &str) -> Value {
        let mut lease: Value = serde_json::from_str(body).unwrap();
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        lease
    }

    pub fn add_workload(&mut self, mut workload: Value) {
        self.version += 1;
        workload["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.workloads
            .insert(text(&workload, "/metadata/name").to_owned(), workload);
    }

    /// A merge patch of a workload, of which nothing but its priority may change.
    pub fn patch_workload(&mut self, name: &str, patch: &Value) -> Result<Value, (u16, &'static str)> {
        let mut new = self
            .workloads
            .get(name)
            .ok_or((404, "workloads not found"))?
            .clone();
        self.version += 1;
        if self.told.remove(name) {
            new["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.workloads.insert(name.to_owned(), new.clone());
        }
        for key in ["uid", "resourceVersion"] {
            let wanted = &patch["metadata"][key];
            assert!(wanted.is_string(), "a patch without a precondition: {patch}");
            if *wanted != new["metadata"][key] {
                return Err((409, "the object has been modified"));
            }
        }
        let keys: Vec<&String> = patch.as_object().unwrap().keys().collect();
        let priority = &patch["spec"]["priority"];
        assert!(
            keys == ["metadata", "spec"]
                && patch["spec"].as_object().unwrap().len() == 1
                && patch["metadata"].as_object().unwrap().len() == 2,
            "{patch}"
        );
        new["spec"]["priority"] = priority.clone();
        new["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.ranked.push((name.to_owned(), priority.as_i64().unwrap()));
        self.workloads.insert(name.to_owned(), new.clone());
        Ok(new)
    }

    /// Names of the workloads that wait, as Kueue would admit them.
    pub fn line(&self) -> Vec<String> {
        let is_pending = |workload: &&Value| {
            let conditions = workload["status"]["conditions"].as_array();
            !conditions
                .into_iter()
                .flatten()
                .any(|one| one["type"] == "QuotaReserved" && one["status"] == "True")
        };
        let mut waiting: Vec<&Value> = self.workloads.values().filter(is_pending).collect();
        waiting.sort_by_key(|workload| {
            (
                -workload["spec"]["priority"].as_i64().unwrap_or(0),
                text(workload, "/metadata/creationTimestamp").to_owned(),
                text(workload, "/metadata/uid").to_owned(),
            )
        });
        let name = |workload: &Value| text(workload, "/metadata/name").to_owned();
        waiting.into_iter().map(name).collect()
    }

    pub fn evict(
        &mut self,
        key: &(String, String),
        eviction: &Value,
        is_dry: bool,
    ) -> Result<(), (u16, &'static str)> {
        let pod = self.pods.get_mut(key).ok_or((404, "pods not found"))?;
        let wanted = &eviction["deleteOptions"]["preconditions"]["uid"];
        assert!(
            wanted.is_string(),
            "an eviction without a precondition: {eviction}"
        );
        if *wanted != pod["metadata"]["uid"] {
            return Err((409, "the UID in the precondition is another one"));
        }
        // A dry run counts nothing, so each pod of a gang passes alone.
        let selects = |budget: &&mut Value| {
            let labels = budget["spec"]["selector"]["matchLabels"].as_object();
            let mut labels = labels.into_iter().flatten();
            labels.all(|(name, value)| pod["metadata"]["labels"][name] == *value)
        };
        let mut is_kept = self.budgeted.contains(&key.1);
        for budget in self.budgets.iter_mut().filter(selects) {
            let left = budget["status"]["disruptionsAllowed"].as_u64().unwrap();
            is_kept |= left == 0;
            if !is_dry {
                budget["status"]["disruptionsAllowed"] = json!(left.saturating_sub(1));
            }
        }
        if is_kept {
            return Err((
                429,
                "Cannot evict pod as it would violate the pod's disruption budget.",
            ));
        }
        if is_dry {
            return Ok(());
        }
        if pod["metadata"]["deletionTimestamp"].is_null() {
            let grace_s = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
            let gone = self.now_s.map(|now_s| super::time(now_s + grace_s));
            pod["metadata"]["deletionTimestamp"] = json!(gone.unwrap_or("2026-01-01T00:00:00Z".into()));
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace_s);
            self.num_evicted += 1;
            if self.makes_anew_at_once && !pod["metadata"]["ownerReferences"].is_null() {
                let pod = pod.clone();
                self.make_anew(pod);
            }
        }
        Ok(())
    }

    /// One look of scheduler, kubelets and controllers.
    pub fn tick(&mut self) {
        let keys: Vec<(String, String)> = self.pods.keys().cloned().collect();
        for key in keys {
            let pod = self.pods[&key].clone();
            let uid = text(&pod, "/metadata/uid").to_owned();
            let phase = text(&pod, "/status/phase");
            if matches!(phase, "Succeeded" | "Failed") {
                continue;
            }
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                self.pods.remove(&key);
                if !self.makes_anew_at_once && !pod["metadata"]["ownerReferences"].is_null() {
                    self.make_anew(pod);
                }
            } else if let Some(end) = self.ends.get(&uid) {
                if Instant::now() >= *end {
                    self.change(&key, |pod| pod["status"]["phase"] = json!("Succeeded"));
                }
            } else if gates(&pod).is_empty() {
                self.bind(&key, &pod, &uid);
            }
        }
    }

    fn make_anew(&mut self, mut pod: Value) {
        self.number += 1;
        let meta = &mut pod["metadata"];
        let name = meta["name"]
            .as_str()
            .unwrap()
            .split('x')
            .next()
            .unwrap()
            .to_owned();
        meta["name"] = json!(format!("{name}x{}", self.number));
        meta["uid"] = json!(format!("123e4567-e89b-42d3-b456-{:012x}", self.number));
        for key in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta.as_object_mut().unwrap().remove(key);
        }
        meta["annotations"]
            .as_object_mut()
            .map(|all| all.remove("pleach/decided"));
        pod["spec"]["schedulingGates"] = json!([{ "name": "pleach/hold" }]);
        pod["spec"].as_object_mut().unwrap().remove("nodeSelector");
        pod["spec"].as_object_mut().unwrap().remove("nodeName");
        pod["status"] = json!({ "phase": "Pending" });
        if let Some(now_s) = self.now_s {
            pod["metadata"]["creationTimestamp"] = json!(super::time(now_s));
        }
        self.add_pod(pod);
    }

    /// A pod runs on a node from the beginning on, and is not bound again.
    pub fn runs(&mut self, pod: &Value, node: &str) {
        let uid = text(pod, "/metadata/uid").to_owned();
        let end = Instant::now() + Duration::from_millis(self.life_ms);
        self.ends.insert(uid.clone(), end);
        self.binds.push((uid, node.to_owned()));
    }

    fn bind(&mut self, key: &(String, String), pod: &Value, uid: &str) {
        let wanted = pod["spec"]["nodeSelector"]["kubernetes.io/hostname"].as_str();
        let own = text(pod, "/metadata/name");
        let takes = self
            .takes
            .iter()
            .find(|(start, _)| own.starts_with(start.as_str()));
        let name = self.nodes.keys().find(|name| {
            let node = &self.nodes[*name];
            takes.is_none_or(|(_, nodes)| nodes.contains(*name))
                && wanted.is_none_or(|wanted| wanted == *name)
                && node["spec"]["unschedulable"] != true
                && node["status"]["conditions"][0]["status"] == "True"
                && self.free(name) >= gpus(pod)
        });
        let Some(name) = name.cloned() else { return };
        let life_ms = pod["metadata"]["annotations"]["life-ms"].as_str();
        let life_ms = life_ms.map_or(self.life_ms, |text| text.parse().unwrap());
        self.ends
            .insert(uid.to_owned(), Instant::now() + Duration::from_millis(life_ms));
        assert!(
            !self.binds.iter().any(|(other, _)| other == uid),
            "{uid} is bound twice"
        );
        self.binds.push((uid.to_owned(), name.clone()));
        let now = self.now_s.map(super::time);
        self.change(key, |pod| {
            pod["spec"]["nodeName"] = json!(name);
            pod["status"]["phase"] = json!("Running");
            if let Some(now) = now {
                pod["status"]["conditions"] =
                    json!([{ "type": "PodScheduled", "status": "True", "lastTransitionTime": now }]);
            }
        });
    }

    /// A pod ends well: the last one whose name begins so.
    pub fn end(&mut self, start: &str) {
        let mut names = self.pods.keys().filter(|(_, name)| name.starts_with(start));
        let (key, now_s) = (names.next_back().unwrap().clone(), self.now_s);
        self.change(&key, |pod| {
            pod["status"]["phase"] = json!("Succeeded");
            World::finish(now_s, pod);
        });
    }

    /// When the containers of a pod ended, as the kubelet tells.
    fn finish(now_s: Option<i64>, pod: &mut Value) {
        if let Some(now_s) = now_s {
            let ended = json!({ "exitCode": 0, "finishedAt": super::time(now_s) });
            pod["status"]["containerStatuses"] = json!([{ "name": "main", "image": "train:1", "imageID": "", "ready": false,
                "restartCount": 0, "state": { "terminated": ended } }]);
        }
    }

    /// A pod fails, and its Job makes another one.
    pub fn fail(&mut self, name: &str) {
        let key = ("team".to_owned(), name.to_owned());
        self.change(&key, |pod| pod["status"]["phase"] = json!("Failed"));
        self.make_anew(self.pods[&key].clone());
    }

    /// The node of a pod, by the first letters of its name, of those that have not ended.
    pub fn node_of(&self, start: &str) -> Option<&str> {
        let lives = |pod: &&Value| !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        let mut pods = self.pods.values().filter(lives);
        let pod = pods.find(|pod| text(pod, "/metadata/name").starts_with(start))?;
        Some(text(pod, "/spec/nodeName")).filter(|name| !name.is_empty())
    }

    /// GPUs of a node that no pod holds.
    pub fn free(&self, name: &str) -> u32 {
        let all: u32 = text(&self.nodes[name], "/status/allocatable/nvidia.com~1gpu")
            .parse()
            .unwrap();
        let holds = |pod: &&Value| {
            text(pod, "/spec/nodeName") == name
                && !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
        };
        // A device that fails leaves its pod where it is.
        all.saturating_sub(self.pods.values().filter(holds).map(gpus).sum::<u32>())
    }

    fn change(&mut self, key: &(String, String), change: impl FnOnce(&mut Value)) {
        self.version += 1;
        let version = self.version.to_string();
        let pod = self.pods.get_mut(key).unwrap();
        change(pod);
        pod["metadata"]["resourceVersion"] = json!(version);
    }

    /// Pods that have not ended.
    pub fn num_left(&self) -> usize {
        self.pods
            .values()
            .filter(|pod| pod["status"]["phase"] != "Succeeded")
            .count()
    }
}

pub(super) fn merge(to: &mut Value, from: &Value) {
    match from {
        Value::Object(from) => {
            if !to.is_object() {
                *to = json!({});
            }
            let to = to.as_object_mut().unwrap();
            for (key, value) in from {
                if value.is_null() {
                    to.remove(key);
                } else {
                    merge(to.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        other => *to = other.clone(),
    }
}
