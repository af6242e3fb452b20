//! The queue of workloads that wait for Kueue: which of them may be given another place in it, and what each one is for the
//! policy.
//!
//! Kueue admits the workload with the higher priority first, of equal ones the earlier one. The priority that a class gave a
//! workload is read from that class, so nothing has to be remembered to give it back. A class goes before the policy: no workload
//! is put before one of a higher class.
//!
//! A queue that stops jobs for others of higher priority is left alone, for our numbers would make it stop some; so is one that
//! namespaces wait in which are not driven, for these would fall behind.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use pleach_daemon::fleet;
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase};
use pleach_scheduler::ExternalId;

use crate::arrival::by_name;
use crate::asks;
use crate::config::Settings;
use crate::job_pods::{Claim, JobPods};
use crate::kueue::{ClusterQueue, LocalQueue, POD_CLASSES, PodSet, Workload, WorkloadPriorityClass};
use crate::names;
use crate::pod::{self, seconds};
use crate::reach::{Asks, Reach};
use crate::standing::Duty;

/// What the API server showed of Kueue.
#[derive(Clone, Debug, Default)]
pub struct KueueLists {
    /// All workloads.
    pub workloads: Vec<Workload>,
    /// All queues with quotas.
    pub cluster_queues: Vec<ClusterQueue>,
    /// All queues of namespaces.
    pub local_queues: Vec<LocalQueue>,
    /// Kueue's classes of priorities.
    pub classes: Vec<WorkloadPriorityClass>,
    /// Kubernetes' own ones.
    pub pod_classes: Vec<PriorityClass>,
}

/// A workload that waits, and whose priority may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a workload of the same name is another one.
    pub uid: String,
    /// The version that was read.
    pub resource_version: String,
    /// Its job in the tables; none where it is not in them.
    pub job: Option<ExternalId>,
    /// Its priority.
    pub priority: i32,
    /// The priority that its class gives, 0 without one.
    pub class: i32,
}

/// Workloads that wait, and the jobs that they were made for.
#[derive(Clone, Debug, Default)]
pub struct Workloads {
    /// Those in queues that are driven, by arrival.
    pub places: Vec<Place>,
    /// Jobs and what people call them, by namespace, kind and name of what a workload was made for.
    owners: BTreeMap<(String, String, String), (ExternalId, String)>,
    /// What an operator should know.
    pub notes: Vec<String>,
}

impl Workloads {
    /// Reads the line.
    #[must_use]
    pub fn read(lists: &KueueLists, settings: &Settings) -> Workloads {
        let (queues, notes) = queues(lists, settings);
        let values = Values::new(lists);
        let (mut owners, mut places) = (BTreeMap::new(), Vec::new());
        for workload in &lists.workloads {
            let Some(id) = id(workload) else { continue };
            let meta = &workload.metadata;
            let namespace = meta.namespace.clone().unwrap_or_default();
            for owner in meta.owner_references.iter().flatten() {
                let key = (namespace.clone(), owner.kind.clone(), owner.name.clone());
                owners.insert(key, (id, own_name(workload).to_owned()));
            }
            let queue = workload.spec.queue_name.as_deref().unwrap_or_default();
            let (true, true) = (
                workload.is_pending(),
                queues.contains(&(namespace.as_str(), queue)),
            ) else {
                continue;
            };
            // What a class that is gone has given cannot be given back.
            let Some(class) = values.of(workload) else {
                continue;
            };
            let came_s = seconds(meta.creation_timestamp.as_ref()).unwrap_or(0);
            let place = Place {
                namespace,
                name: meta.name.clone().unwrap_or_default(),
                uid: meta.uid.clone().unwrap_or_default(),
                resource_version: meta.resource_version.clone().unwrap_or_default(),
                job: asks_for_gpus(workload, settings).then_some(id),
                priority: workload.spec.priority.unwrap_or(0),
                class,
            };
            places.push((came_s, place));
        }
        // As Kueue does: the time, then the UID.
        places.sort_by(|a, b| (a.0, &a.1.uid).cmp(&(b.0, &b.1.uid)));
        Workloads {
            places: places.into_iter().map(|(_, place)| place).collect(),
            owners,
            notes,
        }
    }

    /// The job of a workload that a pod was made for, and its name there; none where there is none.
    #[must_use]
    pub fn owner(&self, pod: &Pod) -> Option<(ExternalId, String)> {
        let meta = &pod.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let job = pod::word(pod, names::JOB_NAME).or_else(|| pod::word(pod, names::JOB_NAME_OLD));
        let owners = [
            ("JobSet", pod::word(pod, names::JOBSET_NAME)),
            ("Job", job),
            ("Pod", meta.name.as_deref()),
        ];
        owners.into_iter().find_map(|(kind, name)| {
            let key = (namespace.to_owned(), kind.to_owned(), name?.to_owned());
            self.owners.get(&key).cloned()
        })
    }
}

/// What the policy sees of the workloads that wait, and how people call them.
pub(crate) fn waiting(
    lists: &KueueLists,
    line: &Workloads,
    nodes: &[NodeSeen],
    reach: &mut Reach<'_>,
    settings: &Settings,
) -> Vec<(JobSeen, JobPods)> {
    let known: BTreeSet<ExternalId> = line.places.iter().filter_map(|place| place.job).collect();
    let jobs = lists.workloads.iter().filter_map(|workload| {
        let id = id(workload).filter(|id| known.contains(id))?;
        let sets: Vec<&PodSet> = of_gpus(workload, settings).collect();
        let (job, claim) = described(id, workload, &sets, nodes, reach, settings)?;
        let pods = JobPods {
            name: called(workload),
            pods: Vec::new(),
            is_made: true,
            owners: Vec::new(),
            seats: Vec::new(),
            duty: Duty::None,
            claim,
            turn: None,
            remark: None,
        };
        Some((job, pods))
    });
    let mut jobs: Vec<(JobSeen, JobPods)> = jobs.collect();
    jobs.sort_by(|a, b| {
        let came = a.0.submit_s.cmp(&b.0.submit_s);
        came.then_with(|| by_name(&a.1.name, &b.1.name))
    });
    jobs
}

fn described(
    id: ExternalId,
    workload: &Workload,
    sets: &[&PodSet],
    nodes: &[NodeSeen],
    reach: &mut Reach<'_>,
    settings: &Settings,
) -> Option<(JobSeen, Option<Claim>)> {
    let first = sets.first()?;
    let spec = first.template.spec.as_ref()?;
    let gpus = pod::gpus(spec, settings);
    let (resource, gpus_per_pod) = gpus.first_key_value()?;
    let is_even = |set: &&PodSet| {
        let of = set.template.spec.as_ref().map(|spec| pod::gpus(spec, settings));
        of.as_ref() == Some(&gpus)
    };
    let count = |set: &&PodSet| u32::try_from(set.count).unwrap_or(0);
    let num_pods = sets.iter().map(count).fold(0, u32::saturating_add);
    let cpus = |set: &&PodSet| {
        let each = set.template.spec.as_ref().map_or(0, |spec| asks::of(spec, "cpu"));
        each.saturating_mul(u64::from(count(set)))
    };
    let cpu_milli = sets.iter().map(cpus).fold(0, u64::saturating_add);
    let meta = first.template.metadata.clone().unwrap_or_default();
    let alike = Pod {
        metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
            namespace: workload.metadata.namespace.clone(),
            ..meta
        },
        ..Pod::default()
    };
    let deadline_s = pod::deadline_s(spec).or(workload.spec.maximum_execution_time_seconds.map(i64::from));
    let claim = pod::claim_s(&alike).map(|claim_s| Claim { claim_s, deadline_s });
    // Where it may go is Kueue's and kube-scheduler's: with unknown types too it has a place in the order.
    let gpu_types = reach
        .of(&Asks::of_template(spec, resource))
        .map(|found| found.types);
    let mut job = JobSeen {
        id,
        phase: Phase::Loose,
        account: pod::account(&alike, settings),
        user: String::new(),
        submit_s: seconds(workload.metadata.creation_timestamp.as_ref()).unwrap_or(0),
        start_s: None,
        limit_s: pod::claim_s(&alike).or(deadline_s),
        num_nodes: num_pods.max(1),
        gpus_per_node: (*gpus_per_pod).max(1),
        is_packed: num_pods > 1,
        share: None,
        gpu_type: None,
        gpu_types: gpu_types.clone().unwrap_or_default(),
        num_cpus: u32::try_from(cpu_milli.div_ceil(1000)).unwrap_or(u32::MAX),
        nodes: Vec::new(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: pleach_daemon::snapshot::Terms::default(),
    };
    let foreign = |reason: &str| Phase::Foreign {
        reason: reason.to_owned(),
    };
    if gpus.len() != 1 {
        job.phase = foreign("asks for GPUs of two resources");
    } else if !sets.iter().all(is_even) {
        job.phase = foreign("has pods that ask for different GPUs");
    } else if let Err(Phase::Blocked { reason }) = gpu_types {
        job.phase = Phase::Blocked { reason };
    } else if let Some(reason) = fleet::never_fits(&job, nodes) {
        job.phase = Phase::Foreign { reason };
    }
    Some((job, claim))
}

/// A job whose pods Kueue has let be made is not ranked again: what is not bound yet waits for kube-scheduler.
pub(crate) fn admitted(job: &mut JobSeen, pods: &mut JobPods) {
    pods.duty = Duty::None;
    let reason = match job.phase {
        _ if pods.pods.iter().any(pod::PodSeen::is_held) => {
            "is held by the gate of a controller that drives by gates"
        }
        Phase::Waiting | Phase::Loose | Phase::Released { .. } => "was admitted and waits for kube-scheduler",
        _ => return,
    };
    job.phase = Phase::Blocked {
        reason: reason.into(),
    };
}

fn id(workload: &Workload) -> Option<ExternalId> {
    workload.metadata.uid.as_deref()?.parse().ok()
}

/// The name of what it was made for, else its own.
fn own_name(workload: &Workload) -> &str {
    let meta = &workload.metadata;
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true));
    let own = meta.name.as_deref().unwrap_or_default();
    owner.map_or(own, |owner| owner.name.as_str())
}

fn called(workload: &Workload) -> String {
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", own_name(workload))
}

fn of_gpus<'a>(workload: &'a Workload, settings: &'a Settings) -> impl Iterator<Item = &'a PodSet> {
    workload.spec.pod_sets.iter().filter(|set| {
        let spec = set.template.spec.as_ref();
        set.count > 0 && spec.is_some_and(|spec| !pod::gpus(spec, settings).is_empty())
    })
}

fn asks_for_gpus(workload: &Workload, settings: &Settings) -> bool {
    of_gpus(workload, settings).next().is_some()
}

/// What classes give.
struct Values<'a> {
    own: BTreeMap<&'a str, i32>,
    pods: BTreeMap<&'a str, i32>,
}

impl<'a> Values<'a> {
    fn new(lists: &'a KueueLists) -> Values<'a> {
        let own = lists.classes.iter();
        let pods = lists.pod_classes.iter();
        Values {
            own: own
                .filter_map(|class| Some((class.metadata.name.as_deref()?, class.value)))
                .collect(),
            pods: pods
                .filter_map(|class| Some((class.metadata.name.as_deref()?, class.value?)))
                .collect(),
        }
    }

    /// What a workload's class gives it; none where that is not known.
    fn of(&self, workload: &Workload) -> Option<i32> {
        match &workload.spec.priority_class_ref {
            None => Some(0),
            Some(class) if class.group == POD_CLASSES => self.pods.get(class.name.as_str()).copied(),
            Some(class) => self.own.get(class.name.as_str()).copied(),
        }
    }
}

/// Queues of namespaces, by namespace and name, whose order is ours, and why others are not.
fn queues<'a>(lists: &'a KueueLists, settings: &Settings) -> (BTreeSet<(&'a str, &'a str)>, Vec<String>) {
    let mut local = Vec::new();
    for queue in &lists.local_queues {
        let meta = &queue.metadata;
        if let (Some(namespace), Some(name), Some(to)) = (
            meta.namespace.as_deref(),
            meta.name.as_deref(),
            queue.spec.cluster_queue.as_deref(),
        ) {
            local.push((namespace, name, to));
        }
    }
    let strangers: BTreeSet<&str> = local
        .iter()
        .filter(|(namespace, _, _)| !settings.drives(namespace))
        .map(|(_, _, to)| *to)
        .collect();
    let stops_in_cohorts = lists.cluster_queues.iter().any(ClusterQueue::preempts_in_cohort);
    let why = |queue: &ClusterQueue| {
        let name = queue.metadata.name.as_deref().unwrap_or_default();
        if queue.preempts_within() {
            Some("it stops jobs for others of higher priority (preemption.withinClusterQueue)")
        } else if queue.spec.cohort_name.is_some() && stops_in_cohorts {
            Some("a queue of a cohort stops jobs for others of higher priority (preemption)")
        } else if strangers.contains(name) {
            Some("namespaces wait in it that are not driven")
        } else {
            None
        }
    };
    let reasons: Vec<(&ClusterQueue, Option<&str>)> = lists
        .cluster_queues
        .iter()
        .map(|queue| (queue, why(queue)))
        .collect();
    let cohorts: BTreeSet<&str> = reasons
        .iter()
        .filter(|(_, why)| why.is_some())
        .filter_map(|(queue, _)| queue.spec.cohort_name.as_deref())
        .collect();
    let (mut ours, mut notes) = (BTreeSet::new(), Vec::new());
    for (queue, why) in reasons {
        let name = queue.metadata.name.as_deref().unwrap_or_default();
        let cohort = queue.spec.cohort_name.as_deref();
        let beside = cohort
            .is_some_and(|cohort| cohorts.contains(cohort))
            .then_some("another queue of its cohort is");
        match why.or(beside) {
            None => drop(ours.insert(name)),
            Some(why) => notes.push(format!("ClusterQueue {name} is left to Kueue: {why}")),
        }
    }
    local.retain(|(_, _, to)| ours.contains(to));
    let places = local.into_iter().map(|(namespace, name, _)| (namespace, name));
    (places.collect(), notes)
}
