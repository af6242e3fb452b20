//! What `kubectl get pods,jobs,nodes -A -o json` prints: pods as gangs, Jobs that have no pods any more, nodes.
//!
//! Pods of one gang are those of one JobSet, of one pod group of Kueue, of one Job or of one training operator's job; any other pod is
//! a job of its own. A gang asks for the most GPUs that its pods had at once, from its first start to its last end. It was submitted
//! when the first of its objects in the document was made: with Kueue the pods of a Job are made when they are admitted, so the Jobs
//! belong into the document.
//!
//! # Source
//! Kubernetes API v1 (`Pod`, `Node`), batch/v1 (`Job`); labels of Kueue (`kueue.x-k8s.io/queue-name`, `pod-group-name`), JobSet
//! (`jobset.sigs.k8s.io/jobset-name`), Kubeflow (`training.kubeflow.org/job-name`) and of NVIDIA's feature discovery
//! (`nvidia.com/gpu.product`).

use std::collections::BTreeMap;
use std::path::Path;

use pleach_tables::clock::{TimeFormat, UTC};
use pleach_tables::open_unpacked;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use std::io::Read as _;

use super::document::{BYTES_MAX, in_list};
use super::reason::Reason;
use super::row::{Facts, NEVER_BEGAN, NO_GPU, PART_OF_GPU, Reader};
use super::taken::Taken;
use crate::Error;

const QUEUE: &str = "kueue.x-k8s.io/queue-name";
/// Labels that name a gang, the widest first.
const GANG_LABELS: [&str; 5] = [
    "jobset.sigs.k8s.io/jobset-name",
    "kueue.x-k8s.io/pod-group-name",
    "training.kubeflow.org/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
];
pub(super) const PRODUCT: &str = "nvidia.com/gpu.product";
/// Names of whole GPUs among resources end so; parts of GPUs have other names.
pub(super) const WHOLE: &str = "/gpu";
/// Most pods of a gang that are looked at.
const PODS_MAX: usize = 100_000;

pub(super) const POD: &str = "a pod of a gang: its GPUs are added to those of its first";
pub(super) const JOB_OF_SET: &str = "a Job of a JobSet: its GPUs are added to those of its first";
const CLAIMS: &str = "asks for GPUs or other devices by resource claims, which are not read";
pub(super) const OTHER: &str = "no pod and no Job";
pub(super) const JOB_WITH_PODS: &str = "a Job whose pods are in the list: it says when they were asked for";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Item {
    kind: String,
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub name: String,
    namespace: String,
    creation_timestamp: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    name: String,
    controller: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    containers: Option<Vec<Container>>,
    resource_claims: Option<Vec<IgnoredAny>>,
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    active_deadline_seconds: Option<f64>,
    priority_class_name: Option<String>,
    // Of a Job.
    parallelism: Option<u32>,
    template: Option<Box<Template>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    resources: Resources,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: Option<BTreeMap<String, Quantity>>,
    limits: Option<BTreeMap<String, Quantity>>,
}

/// A quantity of Kubernetes, as text or as a number.
#[derive(Debug, Default)]
pub(super) struct Quantity(pub String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Number(f64),
            Other(IgnoredAny),
        }
        Ok(Quantity(match Form::deserialize(deserializer)? {
            Form::Text(text) => text,
            Form::Number(number) => number.to_string(),
            Form::Other(_) => String::new(),
        }))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    start_time: Option<String>,
    completion_time: Option<String>,
    failed: Option<f64>,
    succeeded: Option<f64>,
    active: Option<f64>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    state: Option<State>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    terminated: Option<Terminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    finished_at: Option<String>,
}

/// Whether the first lines of a file are of such a document.
pub(in crate::import) fn is_start(start: &str) -> bool {
    let start = start.trim_start();
    start.starts_with('{') && start.contains("\"apiVersion\"") && start.contains("\"items\"")
}

/// A pod that ran.
struct Pod {
    start_s: f64,
    end_s: Option<f64>,
    num_gpus: u32,
    node: String,
    phase: String,
}

/// What is known of a gang.
#[derive(Default)]
struct Gang {
    line: u64,
    pods: Vec<Pod>,
    submit_s: Option<f64>,
    limit_s: Option<f64>,
    queue: String,
    priority: String,
    namespace: String,
    of_type: String,
    /// As its Job tells it, for whose pods are gone.
    job: Option<Pod>,
    /// Objects that were read: more pods than are looked at, all Jobs of a JobSet.
    num_pods: usize,
    num_jobs: usize,
}

/// Reads the pods and Jobs of a document.
pub(super) fn read(path: &Path, reader: &mut Reader<'_>, taken: &mut Taken) -> Result<(), Error> {
    let bytes = open_unpacked(path)?.take(BYTES_MAX);
    let mut gangs: BTreeMap<String, Gang> = BTreeMap::new();
    let mut refused = None;
    let outcome = in_list(bytes, "items", &mut |item: &Item| {
        if let Err(error) = taken.count_row() {
            refused = Some(error);
            return false;
        }
        if let Err(reason) = take(item, taken.account.rows_read, &mut gangs) {
            taken.leave_out(reason);
        }
        true
    });
    if let Some(error) = refused {
        return Err(error);
    }
    outcome.map_err(|error| {
        Error::at(
            path,
            error.line() as u64,
            "-",
            format!("{error}; allowed is what kubectl get pods,jobs -A -o json prints"),
        )
    })?;
    for (name, gang) in gangs {
        (1..gang.num_pods).for_each(|_| taken.leave_out(POD));
        match gang.num_pods {
            0 => (1..gang.num_jobs).for_each(|_| taken.leave_out(JOB_OF_SET)),
            _ => (0..gang.num_jobs).for_each(|_| taken.leave_out(JOB_WITH_PODS)),
        }
        match row(&name, &gang, reader) {
            Ok(row) => taken.rows.push(row),
            Err(reason) => taken.leave_out(reason),
        }
    }
    Ok(())
}

/// Puts an object to its gang, or says why it is none.
fn take(item: &Item, line: u64, gangs: &mut BTreeMap<String, Gang>) -> Result<(), &'static str> {
    let submit_s = time(&item.metadata.creation_timestamp);
    match item.kind.as_str() {
        "Pod" => {
            let num_gpus = gpus_of(&item.spec)?;
            let start_s = time(&item.status.start_time).ok_or(NEVER_BEGAN)?;
            let gang = gang_of(item, line, submit_s, gangs);
            gang.num_pods += 1;
            if gang.pods.len() < PODS_MAX {
                gang.pods.push(Pod {
                    start_s,
                    end_s: finished(&item.status),
                    num_gpus,
                    node: item.spec.node_name.clone().unwrap_or_default(),
                    phase: item.status.phase.clone(),
                });
            }
            Ok(())
        }
        "Job" => {
            let template = item.spec.template.as_deref().ok_or(OTHER)?;
            let each = gpus_of(&template.spec)?;
            let start_s = time(&item.status.start_time).ok_or(NEVER_BEGAN)?;
            let (failed, active) = (
                item.status.failed.unwrap_or(0.0),
                item.status.active.unwrap_or(0.0),
            );
            let phase = match item.status.succeeded {
                Some(num) if num > 0.0 && item.status.completion_time.is_some() => "Succeeded",
                _ if active > 0.0 => "Running",
                _ if failed > 0.0 => "Failed",
                _ => "Unknown",
            };
            let gang = gang_of(item, line, submit_s, gangs);
            let job = Pod {
                start_s,
                end_s: time(&item.status.completion_time),
                num_gpus: each.saturating_mul(item.spec.parallelism.unwrap_or(1).max(1)),
                node: String::new(),
                phase: phase.into(),
            };
            gang.num_jobs += 1;
            // The Jobs of a JobSet are one gang.
            match &mut gang.job {
                Some(found) => {
                    found.num_gpus = found.num_gpus.saturating_add(job.num_gpus);
                    found.start_s = found.start_s.min(job.start_s);
                    found.end_s = found.end_s.zip(job.end_s).map(|(a, b)| a.max(b));
                }
                None => gang.job = Some(job),
            }
            Ok(())
        }
        _ => Err(OTHER),
    }
}

/// The gang of an object, with what the object says of it.
fn gang_of<'a>(
    item: &Item,
    line: u64,
    submit_s: Option<f64>,
    gangs: &'a mut BTreeMap<String, Gang>,
) -> &'a mut Gang {
    let metadata = &item.metadata;
    let label = |name: &str| metadata.labels.as_ref().and_then(|labels| labels.get(name));
    let owner = metadata.owner_references.iter().flatten();
    let owner = owner.filter(|owner| owner.controller && owner.kind != "ReplicaSet");
    let owner = owner.map(|owner| owner.name.as_str()).next();
    let name = GANG_LABELS
        .iter()
        .find_map(|name| label(name).map(String::as_str));
    let name = name.or(owner).unwrap_or(&metadata.name);
    let gang = gangs
        .entry(format!("{}/{name}", metadata.namespace))
        .or_insert_with(|| Gang {
            line,
            namespace: metadata.namespace.clone(),
            ..Gang::default()
        });
    if let Some(at) = submit_s {
        gang.submit_s = Some(gang.submit_s.map_or(at, |known| known.min(at)));
    }
    let spec = item.spec.template.as_deref().map_or(&item.spec, |of| &of.spec);
    gang.limit_s = gang.limit_s.or(item.spec.active_deadline_seconds);
    let fill = |field: &mut String, text: Option<&String>| {
        if let Some(text) = text.filter(|_| field.is_empty()) {
            field.clone_from(text);
        }
    };
    fill(&mut gang.queue, label(QUEUE));
    fill(&mut gang.priority, spec.priority_class_name.as_ref());
    let product = spec
        .node_selector
        .as_ref()
        .and_then(|selector| selector.get(PRODUCT));
    fill(&mut gang.of_type, product);
    gang
}

fn row(name: &str, gang: &Gang, reader: &mut Reader<'_>) -> Result<super::row::Row, Reason> {
    let alone = gang.job.as_ref();
    let pods: Vec<&Pod> = match gang.pods.is_empty() {
        true => alone.into_iter().collect(),
        false => gang.pods.iter().collect(),
    };
    let start_s = pods.iter().map(|pod| pod.start_s).fold(f64::INFINITY, f64::min);
    let is_over = pods.iter().all(|pod| pod.end_s.is_some());
    let end_s = pods
        .iter()
        .filter_map(|pod| pod.end_s)
        .fold(f64::NEG_INFINITY, f64::max);
    let has = |phase: &str| pods.iter().any(|pod| pod.phase == phase);
    let state = match () {
        () if !is_over && has("Running") => "RUNNING",
        () if has("Failed") => "FAILED",
        () if has("Succeeded") => "COMPLETED",
        () if is_over => "UNKNOWN",
        () => "RUNNING",
    };
    let mut nodes: Vec<&str> = pods.iter().map(|pod| pod.node.as_str()).collect();
    nodes.retain(|node| !node.is_empty());
    nodes.sort_unstable();
    nodes.dedup();
    let num_gpus = most_at_once(&pods);
    let gpus = num_gpus.to_string();
    let asked = match gang.of_type.as_str() {
        "" => gpus.clone(),
        of_type => format!("gres/gpu={num_gpus},gres/gpu:{of_type}={num_gpus}"),
    };
    let facts = Facts {
        id: name,
        submit_s: gang.submit_s,
        start_s: Some(start_s),
        end_s: is_over.then_some(end_s),
        tells_starts: true,
        time_limit: &gang.limit_s.map(|limit| limit.to_string()).unwrap_or_default(),
        gpus: &gpus,
        gpus_asked: &asked,
        num_nodes: &match nodes.len() {
            0 => String::new(),
            num => num.to_string(),
        },
        nodes: &nodes.join(","),
        tenant: &gang.namespace,
        state,
        partition: &gang.queue,
        qos: &gang.priority,
        ..Facts::default()
    };
    reader.row(gang.line, &facts)
}

/// The most GPUs that pods had at one instant: one that was made again in place of another does not count beside it.
fn most_at_once(pods: &[&Pod]) -> u32 {
    let mut changes: Vec<(f64, i64)> = Vec::new();
    for pod in pods {
        changes.push((pod.start_s, i64::from(pod.num_gpus)));
        changes.extend(pod.end_s.map(|end| (end, -i64::from(pod.num_gpus))));
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// When all containers of a pod had ended.
fn finished(status: &Status) -> Option<f64> {
    let ends = status.container_statuses.iter().flatten().map(|container| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        time(&ended.finished_at)
    });
    let ends: Option<Vec<f64>> = ends.collect();
    ends.filter(|ends| !ends.is_empty())
        .map(|ends| ends.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// GPUs for which the containers of a pod ask.
fn gpus_of(spec: &Spec) -> Result<u32, &'static str> {
    let (mut num, mut is_part) = (0.0, false);
    for container in spec.containers.iter().flatten() {
        let resources = &container.resources;
        let mut asked: BTreeMap<&str, &str> = BTreeMap::new();
        // What is only limited is requested as much.
        for (name, quantity) in [&resources.limits, &resources.requests]
            .into_iter()
            .flatten()
            .flatten()
        {
            asked.insert(name, &quantity.0);
        }
        for (name, quantity) in asked {
            if name.ends_with(WHOLE) {
                num += quantity.parse::<f64>().unwrap_or(0.0).max(0.0);
            } else if name.contains("/mig-") || name.contains("/gpu.shared") {
                is_part = true;
            }
        }
    }
    match num as u32 {
        0 if is_part => Err(PART_OF_GPU),
        0 if spec.resource_claims.iter().flatten().next().is_some() => Err(CLAIMS),
        0 => Err(NO_GPU),
        num => Ok(num),
    }
}

fn time(text: &Option<String>) -> Option<f64> {
    TimeFormat::Iso.read(text.as_deref()?, &UTC)
}
