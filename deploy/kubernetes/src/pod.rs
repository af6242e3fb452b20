//! One pod: what it asks for, what holds it, where it stands.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::asks::{self, Amounts, HostPort};
use crate::config::Settings;
use crate::constraint;
use crate::mark::{Decided, TEXT_MAX};
use crate::names;
use crate::volume;

/// What of a pod a round works with; cheap to clone, for each look has it again while the pod stays the same.
#[derive(Clone, Debug)]
pub struct PodSeen(Arc<Facts>);

impl Deref for PodSeen {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl DerefMut for PodSeen {
    fn deref_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.0)
    }
}

/// What is known of a pod.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a pod of the same name is another one.
    pub uid: String,
    /// The version that was read; what is changed has to be this one still.
    pub resource_version: String,
    /// When it was made, Unix time, s.
    pub created_s: i64,
    /// The GPU resource that it asks for, the first of several; empty where there is none.
    pub resource: String,
    /// Devices of it.
    pub num_gpus: u32,
    /// What else it asks of a node.
    pub asks: Amounts,
    /// Ports of the host that it takes.
    pub ports: Vec<HostPort>,
    /// Claims to volumes, by name.
    pub claims: Vec<String>,
    /// All its scheduling gates.
    pub gates: Vec<String>,
    /// The node that it is bound to.
    pub node: Option<String>,
    /// When it began to run there, Unix time, s.
    pub start_s: Option<i64>,
    /// Whether its containers have begun.
    pub has_begun: bool,
    /// When it was bound, by the clock of the API server, Unix time, s.
    pub bound_s: Option<i64>,
    /// Why kube-scheduler did not bind it when it last tried, at most [`names::WORD_MAX`] letters.
    pub unbound: Option<String>,
    /// What was decided about it.
    pub decided: Option<Decided>,
    /// Whether it is being deleted.
    pub is_ending: bool,
    /// When it is to be gone, if it is being deleted, Unix time, s.
    pub gone_s: Option<i64>,
    /// The time that it was given to end from when that was asked for, s; 0 where it is not being deleted.
    pub grace_s: i64,
    /// Whether its operator's settings make it a lease.
    pub is_lease: bool,
    /// Whether a controller owns it, which makes another one in its place.
    pub is_owned: bool,
    /// The UID of that controller's object.
    pub owner: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it was left to kube-scheduler by its annotation.
    pub is_left: bool,
    /// The run time that its user believes in, s: [`Facts::claim_s`], else [`Facts::deadline_s`].
    pub limit_s: Option<i64>,
    /// What its user says of it, which nothing holds it to, s.
    pub claim_s: Option<i64>,
    /// When it is ended, s after its start.
    pub deadline_s: Option<i64>,
    /// Its priority; of those that Kubernetes keeps for itself, the highest of users.
    pub priority: i32,
    /// Why the tables cannot express it; none where they can.
    pub strange: Option<&'static str>,
    /// Whether it is for a scheduler that is not driven.
    pub is_of_others: bool,
    /// Index in its Indexed Job.
    pub index: Option<u64>,
}

impl PodSeen {
    /// CPUs that it asks for, thousandths.
    #[must_use]
    pub fn cpu_milli(&self) -> u64 {
        self.asks.get("cpu").copied().unwrap_or(0)
    }

    /// Whether our gate holds it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.gates.iter().any(|gate| gate == names::GATE)
    }

    /// The first gate that is not ours.
    #[must_use]
    pub fn other_gate(&self) -> Option<&str> {
        let mut gates = self.gates.iter().map(String::as_str);
        gates.find(|gate| *gate != names::GATE)
    }
}

/// Whether it has ended, and holds nothing any more.
#[must_use]
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// A label, or an annotation of the same name, of at most [`names::WORD_MAX`] bytes.
#[must_use]
pub fn word<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let of = |map: &'a Option<BTreeMap<String, String>>| map.as_ref().and_then(|map| map.get(name));
    of(&pod.metadata.labels)
        .or_else(|| of(&pod.metadata.annotations))
        .map(String::as_str)
        .filter(|text| (1..=names::WORD_MAX).contains(&text.len()))
}

/// Whether a pod stays out by its label.
#[must_use]
pub fn opts_out(pod: &Pod, settings: &Settings) -> bool {
    settings.opt_out && word(pod, names::DRIVE) == Some("false")
}

/// Whether a pod that is being made in a namespace is to be held: it is driven, and has no gate of ours and no node yet.
#[must_use]
pub fn is_to_be_held(pod: &Pod, namespace: &str, settings: &Settings) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let scheduler = spec.scheduler_name.as_deref().unwrap_or("default-scheduler");
    let is_bound = spec.node_name.as_deref().is_some_and(|name| !name.is_empty());
    !settings.drive.is_order()
        && settings.drives(namespace)
        && !opts_out(pod, settings)
        && settings.scheduler_names.iter().any(|name| name == scheduler)
        && !has_gate(pod)
        && !is_bound
        && !gpus(spec, settings).is_empty()
}

/// Whether our gate holds it.
#[must_use]
pub fn has_gate(pod: &Pod) -> bool {
    let gates = pod
        .spec
        .iter()
        .flat_map(|spec| spec.scheduling_gates.iter().flatten());
    gates.into_iter().any(|gate| gate.name == names::GATE)
}

/// The account that a pod counts for: what the label of the settings says, else its namespace.
#[must_use]
pub fn account(pod: &Pod, settings: &Settings) -> String {
    let told = match &settings.tenant_label {
        None => pod.metadata.namespace.as_deref(),
        Some(label) => word(pod, label),
    };
    told.unwrap_or_default().to_owned()
}

/// Takes off what no round reads: users may write a quarter of a megabyte of annotations on each pod, and a megabyte of environment.
pub fn trim(pod: &mut Pod, tenant_label: Option<&str>) {
    pod.metadata.managed_fields = None;
    let has_ended = has_ended(pod);
    if let Some(status) = &mut pod.status {
        trim_status(status, has_ended);
    }
    if let Some(spec) = &mut pod.spec {
        spec.containers.iter_mut().for_each(trim_container);
        spec.init_containers.iter_mut().flatten().for_each(trim_container);
    }
    let Some(annotations) = &mut pod.metadata.annotations else {
        return;
    };
    annotations.retain(|name, text| match name.as_str() {
        names::DECIDED => text.len() <= TEXT_MAX,
        // That it is there is read, and not what it says.
        names::LEFT => {
            text.clear();
            true
        }
        name => text.len() <= names::WORD_MAX && (names::is_read(name) || tenant_label == Some(name)),
    });
}

/// What a kubelet writes of a pod that lives is no change to a round, but for where it was bound and that it has begun.
fn trim_status(status: &mut PodStatus, has_ended: bool) {
    let mut conditions = status.conditions.take();
    let is_read = |one: &PodCondition| ["PodScheduled", "DisruptionTarget"].contains(&one.type_.as_str());
    conditions.iter_mut().for_each(|all| all.retain(is_read));
    *status = PodStatus {
        phase: status.phase.take(),
        reason: status.reason.take(),
        start_time: status.start_time.take(),
        conditions,
        container_statuses: status.container_statuses.take_if(|_| has_ended),
        ..PodStatus::default()
    };
}

fn trim_container(container: &mut Container) {
    let is_read = |variable: &EnvVar| variable.name == pleach_site::names::TORCH_NODES;
    let mut env = container.env.take().unwrap_or_default();
    env.retain(is_read);
    *container = Container {
        name: std::mem::take(&mut container.name),
        env: Some(env).filter(|env| !env.is_empty()),
        ports: container.ports.take(),
        resources: container.resources.take(),
        restart_policy: container.restart_policy.take(),
        ..Container::default()
    };
}

/// The mark of a controller with the key of the settings. One that is for any pod of its owner counts for a pod alone that our gate
/// does not hold: users can copy it, and the webhook holds the pods that they make.
fn decided(pod: &Pod, settings: &Settings) -> Option<Decided> {
    let meta = &pod.metadata;
    let text = meta.annotations.as_ref()?.get(names::DECIDED)?;
    let of = |uid: &str| Decided::read(text, uid, &settings.marks);
    let of_owner = || of(&Decided::any_of(owner(pod)?)).filter(|mark| mark.num_pods() == 1);
    of(meta.uid.as_deref()?).or_else(|| of_owner().filter(|_| !has_gate(pod)))
}

/// The UID of the controller that makes a pod.
pub(crate) fn owner(pod: &Pod) -> Option<&str> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(owner.uid.as_str())
}

/// A time, Unix s.
#[must_use]
pub fn seconds(time: Option<&Time>) -> Option<i64> {
    time.map(|time| time.0.as_second())
}

/// GPUs that a pod asks for, by resource. A resource that is no whole number counts as one device.
#[must_use]
pub fn gpus(spec: &PodSpec, settings: &Settings) -> BTreeMap<String, u32> {
    let mut names = asks::names(spec);
    names.retain(|name| settings.is_gpu(name));
    let num = |name: &String| {
        let most = asks::of_containers(spec, &|resources| {
            let quantity = asks::asked(resources, name);
            quantity.map_or(0, |quantity| {
                u64::from(pleach_site::quantity::count(&quantity.0).unwrap_or(1))
            })
        });
        (name.clone(), u32::try_from(most).unwrap_or(u32::MAX))
    };
    names.into_iter().map(num).filter(|(_, num)| *num > 0).collect()
}

/// What the user of a pod says of its run time, s.
pub(crate) fn claim_s(pod: &Pod) -> Option<i64> {
    number(pod, names::ESTIMATE_S).filter(|claim_s| *claim_s > 0)
}

/// When a pod is ended, s after its start.
pub(crate) fn deadline_s(spec: &PodSpec) -> Option<i64> {
    spec.active_deadline_seconds.filter(|deadline_s| *deadline_s > 0)
}

/// A label or an annotation that is a whole number.
fn number(pod: &Pod, name: &str) -> Option<i64> {
    word(pod, name).and_then(|text| text.trim().parse().ok())
}

/// Reads a pod; none where it asks for no GPUs and our gate does not hold it, and where it has no name or UID.
#[must_use]
pub fn read(pod: &Pod, settings: &Settings) -> Option<PodSeen> {
    let spec = pod.spec.as_ref()?;
    let meta = &pod.metadata;
    let gpus = gpus(spec, settings);
    let gates: Vec<String> = spec
        .scheduling_gates
        .iter()
        .flatten()
        .map(|gate| gate.name.clone())
        .collect();
    if gpus.is_empty() && !gates.iter().any(|gate| gate == names::GATE) {
        return None;
    }
    let is_held = gates.iter().any(|gate| gate == names::GATE);
    let decided = decided(pod, settings);
    let (resource, num_gpus) = gpus
        .first_key_value()
        .map_or((String::new(), 0), |(name, num)| (name.clone(), *num));
    let status = pod.status.as_ref();
    let scheduler = spec.scheduler_name.as_deref().unwrap_or("default-scheduler");
    let is_of_others = !settings.scheduler_names.iter().any(|name| name == scheduler);
    let strange = if gpus.len() != 1 {
        Some(if gpus.is_empty() {
            "asks for no GPUs"
        } else {
            "asks for GPUs of two resources"
        })
    } else if is_of_others {
        Some("names another scheduler")
    } else {
        constraint::strange(spec)
    };
    let owner = owner(pod);
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let scheduled = conditions.find(|one| one.type_ == "PodScheduled");
    let bound = scheduled.filter(|one| one.status == "True");
    let unbound = scheduled.filter(|one| one.status != "True" && !is_held);
    let unbound = unbound.and_then(|one| one.message.as_ref());
    let bound_s = seconds(bound.and_then(|one| one.last_transition_time.as_ref()));
    let start_s = seconds(status.and_then(|status| status.start_time.as_ref()));
    Some(PodSeen(Arc::new(Facts {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone()?,
        uid: meta.uid.clone()?,
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        created_s: seconds(meta.creation_timestamp.as_ref()).unwrap_or(0),
        resource,
        num_gpus,
        asks: asks::amounts(spec, settings),
        ports: asks::ports(spec),
        claims: volume::claims(pod),
        gates,
        node: spec.node_name.clone().filter(|name| !name.is_empty()),
        start_s: start_s.or(bound_s),
        has_begun: status.and_then(|status| status.phase.as_deref()) != Some("Pending"),
        bound_s: bound_s.or(start_s),
        unbound: unbound.map(|text| text.chars().take(names::WORD_MAX).collect()),
        decided,
        is_ending: meta.deletion_timestamp.is_some(),
        gone_s: seconds(meta.deletion_timestamp.as_ref()),
        grace_s: meta.deletion_grace_period_seconds.unwrap_or(0).max(0),
        is_lease: settings.leases.has(pod),
        is_owned: owner.is_some(),
        owner: owner.map(str::to_owned),
        labels: meta.labels.clone().unwrap_or_default(),
        is_left: meta
            .annotations
            .as_ref()
            .is_some_and(|all| all.contains_key(names::LEFT)),
        limit_s: claim_s(pod).or(deadline_s(spec)),
        claim_s: claim_s(pod),
        deadline_s: deadline_s(spec),
        priority: pleach_site::priority(spec.priority),
        strange,
        is_of_others,
        index: number(pod, names::JOB_INDEX).and_then(|index| u64::try_from(index).ok()),
    })))
}
