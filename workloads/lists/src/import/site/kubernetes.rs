//! What `kubectl get pods,jobs,nodes -A -o json` prints, as far as it tells of jobs: pods, Jobs, and when pod groups were made.
//!
//! # Source
//! Kubernetes API v1 (`Pod`, `Node`), batch/v1 (`Job`), `scheduling.k8s.io` (`PodGroup`); labels of Kueue
//! (`kueue.x-k8s.io/queue-name`) and of NVIDIA's feature discovery (`nvidia.com/gpu.product`); [`pleach_site::names`].

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::cluster_spec::SiteScheduler;
use pleach_site::{SetPart, names, quantity};
use pleach_tables::clock::{TimeFormat, UTC};
use pleach_tables::open_unpacked;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use std::io::Read as _;

use super::document::{BYTES_MAX, in_list};
use super::kubernetes_gangs::{JobRow, Objects, PodRow};
use super::row::{NEVER_BEGAN, NO_GPU, PART_OF_GPU, Reader};
use super::taken::Taken;
use crate::Error;

pub(super) const PRODUCT: &str = "nvidia.com/gpu.product";
/// Names of whole GPUs among resources end so; parts of GPUs have other names.
pub(super) const WHOLE: &str = "/gpu";

const CLAIMS: &str = "asks for GPUs or other devices by resource claims, which are not read";
pub(super) const OTHER: &str = "no pod and no Job";

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
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    resource_claims: Option<Vec<IgnoredAny>>,
    scheduling_group: Option<SchedulingGroup>,
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    active_deadline_seconds: Option<f64>,
    priority_class_name: Option<String>,
    priority: Option<i32>,
    scheduler_name: Option<String>,
    // Of a Job.
    parallelism: Option<u32>,
    completions: Option<u32>,
    completion_mode: Option<String>,
    template: Option<Box<Template>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SchedulingGroup {
    pod_group_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    resources: Resources,
    restart_policy: Option<String>,
    env: Option<Vec<Variable>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: Option<String>,
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
    // Of a RayJob.
    ray_cluster_name: Option<String>,
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

/// Reads the pods and Jobs of a document.
pub(super) fn read(path: &Path, reader: &mut Reader<'_>, taken: &mut Taken) -> Result<(), Error> {
    let bytes = open_unpacked(path)?.take(BYTES_MAX);
    let mut objects = Objects::default();
    let mut refused = None;
    let outcome = in_list(bytes, "items", &mut |item: &Item| {
        if let Err(error) = taken.count_row() {
            refused = Some(error);
            return false;
        }
        if let Err(reason) = take(item, taken.account.rows_read, &mut objects) {
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
    // None where one is not known, which comes first in their order; else the one that is last.
    let mut schedulers = objects.schedulers.iter().copied();
    taken.scheduler = schedulers
        .clone()
        .next()
        .flatten()
        .and(schedulers.next_back().flatten());
    objects.rows(reader, taken);
    Ok(())
}

/// Takes an object, or says why it is none.
fn take(item: &Item, line: u64, objects: &mut Objects) -> Result<(), &'static str> {
    let Item {
        metadata,
        spec,
        status,
        ..
    } = item;
    match item.kind.as_str() {
        "Pod" => {
            let start_s = time(&status.start_time);
            let num_gpus = match gpus_of(spec) {
                // What it holds of a node with GPUs is noted.
                Err(NO_GPU) if start_s.is_some() && spec.node_name.is_some() => 0,
                num_gpus => num_gpus?,
            };
            let node = spec.node_name.clone().unwrap_or_default();
            if num_gpus > 0 {
                objects.schedulers.insert(scheduler(metadata, spec));
            }
            objects.pods.push(PodRow {
                num_gpus,
                cores: cores_of(spec),
                start_s: start_s.ok_or(NEVER_BEGAN)?,
                end_s: finished(status),
                node: match slices_of(spec) {
                    Some((resource, ..)) => unit(&node, resource),
                    None => node,
                },
                phase: status.phase.clone(),
                group: spec
                    .scheduling_group
                    .as_ref()
                    .and_then(|group| group.pod_group_name.clone()),
                torch_nodes: torch_nodes(spec),
                ..common(metadata, spec, line)
            });
        }
        "Job" => objects.jobs.push(job(metadata, spec, status, line)?),
        "PodGroup" => {
            let made_s = time(&metadata.creation_timestamp).ok_or(OTHER)?;
            let of = (metadata.namespace.clone(), metadata.name.clone());
            objects.pod_groups.insert(of, made_s);
            return Err(OTHER);
        }
        names::RAY_JOB => {
            let made_s = time(&metadata.creation_timestamp).ok_or(OTHER)?;
            let cluster = status.ray_cluster_name.clone().ok_or(OTHER)?;
            let of = (metadata.namespace.clone(), metadata.name.clone());
            objects.ray_jobs.insert(of, (cluster, made_s));
            return Err(OTHER);
        }
        _ => return Err(OTHER),
    }
    Ok(())
}

/// What a pod tells of the scheduler that placed it.
fn scheduler(metadata: &Metadata, spec: &Spec) -> Option<SiteScheduler> {
    let has_queue = metadata
        .labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key(names::KUEUE_QUEUE));
    let is_known = spec.scheduler_name.as_deref() == Some("default-scheduler") && !has_queue;
    is_known.then_some(match spec.scheduling_group {
        Some(_) => SiteScheduler::KubernetesGangs,
        None => SiteScheduler::Kubernetes,
    })
}

/// What pods and Jobs tell alike.
fn common(metadata: &Metadata, spec: &Spec, line: u64) -> PodRow {
    let mut words: BTreeMap<String, String> = BTreeMap::new();
    // Labels count for more than annotations of the same name.
    for (name, text) in [&metadata.annotations, &metadata.labels]
        .into_iter()
        .flatten()
        .flatten()
    {
        let is_read = names::OF_GANGS.contains(&name.as_str())
            || [names::KUEUE_QUEUE, names::KUEUE_PRIORITY].contains(&name.as_str());
        if is_read && (1..=names::WORD_MAX).contains(&text.len()) {
            words.insert(name.clone(), text.clone());
        }
    }
    let selector = spec.node_selector.as_ref();
    let slices = slices_of(spec).map(|(_, of_type, _)| of_type.to_owned());
    PodRow {
        line,
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        made_s: time(&metadata.creation_timestamp),
        limit_s: spec.active_deadline_seconds,
        queue: words.remove(names::KUEUE_QUEUE).unwrap_or_default(),
        priority: words
            .remove(names::KUEUE_PRIORITY)
            .unwrap_or_else(|| priority(spec)),
        of_type: slices
            .or_else(|| selector.and_then(|selector| selector.get(PRODUCT)).cloned())
            .unwrap_or_default(),
        words,
        ..PodRow::default()
    }
}

fn job(metadata: &Metadata, spec: &Spec, status: &Status, line: u64) -> Result<JobRow, &'static str> {
    let template = spec.template.as_deref().ok_or(OTHER)?;
    let each = gpus_of(&template.spec)?;
    let start_s = time(&status.start_time).ok_or(NEVER_BEGAN)?;
    let (failed, active) = (status.failed.unwrap_or(0.0), status.active.unwrap_or(0.0));
    let phase = match status.succeeded {
        Some(num) if num > 0.0 && status.completion_time.is_some() => "Succeeded",
        _ if active > 0.0 => "Running",
        _ if failed > 0.0 => "Failed",
        _ => "Unknown",
    };
    let parallelism = spec.parallelism.unwrap_or(1);
    let seen = common(metadata, &template.spec, line);
    Ok(JobRow {
        parallelism,
        completions: spec.completions,
        is_indexed: spec.completion_mode.as_deref() == Some("Indexed"),
        as_pod: PodRow {
            num_gpus: each.saturating_mul(parallelism.max(1)),
            start_s,
            end_s: time(&status.completion_time),
            phase: phase.into(),
            limit_s: spec.active_deadline_seconds.or(seen.limit_s),
            ..seen
        },
    })
}

impl JobRow {
    /// As gangs look at it. That some of its pods have ended changes nothing of how they began.
    pub(super) fn view(&self) -> pleach_site::Job<'_> {
        let word = |name: &str| self.as_pod.words.get(name).map(String::as_str);
        let set = word(names::JOBSET_NAME).zip(word(names::REPLICATED_JOB));
        pleach_site::Job {
            namespace: &self.as_pod.namespace,
            name: &self.as_pod.name,
            parallelism: self.parallelism,
            completions: self.completions,
            succeeded: 0,
            is_indexed: self.is_indexed,
            asks_for_devices: true,
            set: set.map(|(set, part)| SetPart {
                set,
                part,
                replicas: word(names::REPLICAS)
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(1),
            }),
        }
    }
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

fn torch_nodes(spec: &Spec) -> Option<String> {
    let variables = spec
        .containers
        .iter()
        .flatten()
        .flat_map(|container| container.env.iter().flatten());
    let mut nodes = variables.filter(|variable| variable.name == names::TORCH_NODES);
    nodes.next()?.value.clone()
}

/// The class of a pod's priority; where none is named, the number.
fn priority(spec: &Spec) -> String {
    let class = spec.priority_class_name.clone().filter(|class| !class.is_empty());
    let number = || match pleach_site::priority(spec.priority) {
        0 => String::new(),
        number => number.to_string(),
    };
    class.unwrap_or_else(number)
}

/// What the containers of a pod hold of something.
fn held(spec: &Spec, each: impl Fn(&Container) -> u64) -> u64 {
    let is_sidecar = |container: &Container| container.restart_policy.as_deref() == Some("Always");
    let inits = spec.init_containers.iter().flatten();
    pleach_site::held(
        inits.map(|container| (is_sidecar(container), each(container))),
        spec.containers.iter().flatten().map(&each),
    )
}

/// Cores that a pod asks for.
fn cores_of(spec: &Spec) -> f64 {
    let milli = |container: &Container| {
        let cpus = asked(container).filter(|(name, _)| *name == "cpu");
        cpus.last().map_or(0, |(_, amount)| quantity::milli(&amount.0))
    };
    held(spec, milli) as f64 / 1000.0
}

/// The slices of one kind that a pod without whole GPUs asks for: the resource, their type, how many.
fn slices_of(spec: &Spec) -> Option<(&String, &str, u32)> {
    if held(spec, whole_gpus) > 0 {
        return None;
    }
    let all = spec
        .containers
        .iter()
        .chain(&spec.init_containers)
        .flatten()
        .flat_map(asked);
    let mut kinds: Vec<(&String, &str)> = all
        .filter_map(|(name, _)| Some((name, pleach_site::slices(name)?)))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let [(resource, of_type)] = kinds[..] else {
        return None;
    };
    let each = |container: &Container| {
        let own = asked(container).filter(|(name, _)| *name == resource);
        own.last().map_or(0, |(_, amount)| {
            u64::from(quantity::count(&amount.0).unwrap_or(0))
        })
    };
    let num = u32::try_from(held(spec, each)).ok().filter(|num| *num > 0)?;
    Some((resource, of_type, num))
}

/// Name of the node that slices are beside a node.
pub(super) fn unit(node: &str, resource: &str) -> String {
    format!("{node}/{resource}")
}

/// GPUs that a pod holds, or slices of one kind.
fn gpus_of(spec: &Spec) -> Result<u32, &'static str> {
    let inits = spec.init_containers.iter().flatten();
    let containers = || spec.containers.iter().flatten();
    let num = held(spec, whole_gpus);
    if let Some((.., num)) = slices_of(spec) {
        return Ok(num);
    }
    let is_part = |name: &String| name.contains("/mig-") || name.contains("/gpu.shared");
    match u32::try_from(num).unwrap_or(u32::MAX) {
        0 if containers()
            .chain(inits)
            .any(|container| asked(container).any(|(name, _)| is_part(name))) =>
        {
            Err(PART_OF_GPU)
        }
        0 if spec.resource_claims.iter().flatten().next().is_some() => Err(CLAIMS),
        0 => Err(NO_GPU),
        num => Ok(num),
    }
}

/// What a container asks for; a request counts for more than the limit of the same name, which comes before it.
fn asked(container: &Container) -> impl Iterator<Item = (&String, &Quantity)> {
    let Resources { limits, requests } = &container.resources;
    [limits, requests].into_iter().flatten().flatten()
}

fn whole_gpus(container: &Container) -> u64 {
    let whole = asked(container).filter(|(name, _)| name.ends_with(WHOLE));
    let by_name: BTreeMap<&String, &Quantity> = whole.collect();
    let counts = by_name
        .values()
        .map(|amount| quantity::value(&amount.0).unwrap_or(0.0));
    counts.map(|count| count as u64).fold(0, u64::saturating_add)
}

fn time(text: &Option<String>) -> Option<f64> {
    TimeFormat::Iso.read(text.as_deref()?, &UTC)
}
