//! From lists of nodes, pods and Jobs to the snapshot that a round decides on: a function without clock, network or state.
//!
//! What the tables cannot say is left to kube-scheduler, as in the daemon for Slurm: a held pod that nobody could place is let go
//! without a node. What is only not ready yet stays held.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Snapshot, VERSION};
use pleach_scheduler::ExternalId;

use crate::arrival::by_name;
use crate::config::Settings;
use crate::gang::{Jobs, Key, Membership};
use crate::names;
use crate::node::{self, Unit, unit_name};
use crate::pod::{self, PodSeen};
use crate::reach::Reach;
use crate::stand::{self, Duty, Stand};

/// What the API server showed.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All pods; those that have ended may be missing.
    pub pods: Vec<Pod>,
    /// All Jobs.
    pub jobs: Vec<Job>,
}

/// A node as the controller has to know it beside its units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its label [`names::HOSTNAME`].
    pub hostname: String,
    /// CPUs that no pod asked for, thousandths.
    pub cpu_milli_free: u64,
    /// Host memory that no pod asked for, bytes.
    pub memory_bytes_free: u64,
}

/// The pods of a job.
#[derive(Clone, Debug)]
pub struct JobPods {
    /// Namespace and name, for people.
    pub name: String,
    /// Its pods in the order of their ranks; those that are ending only where there are no others.
    pub pods: Vec<PodSeen>,
    /// Pods on each unit, as decided; empty where nothing was.
    pub seats: Vec<(String, u32)>,
    /// What is to be done about its gates, whatever the policy says.
    pub duty: Duty,
}

/// A round's view of the cluster.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What the policy decides on.
    pub snapshot: Snapshot,
    /// Pods behind the jobs of the snapshot.
    pub jobs: BTreeMap<ExternalId, JobPods>,
    /// Nodes by name.
    pub hosts: BTreeMap<String, Host>,
    /// What an operator should know.
    pub notes: Vec<String>,
}

/// Makes the view.
#[must_use]
pub fn observe(lists: &Lists, settings: &Settings, now_s: i64) -> Observed {
    let (units, mut notes) = node::units(&lists.nodes, settings);
    let mut hosts = hosts(&lists.nodes);
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    for pod in lists.pods.iter().filter(|pod| !pod::has_ended(pod)) {
        count(pod, settings, &mut hosts, &mut used);
    }
    let nodes = units
        .iter()
        .map(|unit| seen(unit, lists, &hosts, &used))
        .collect();
    let index = Jobs::new(&lists.jobs);
    let mut groups: BTreeMap<Key, Group<'_>> = BTreeMap::new();
    for pod in lists.pods.iter().filter(|pod| !pod::has_ended(pod)) {
        let Some(seen) = pod::read(pod, settings) else {
            continue;
        };
        if !settings.drives(&seen.namespace)
            || pod::word(pod, names::DRIVE) == Some("false") && !seen.is_held()
        {
            continue;
        }
        let member = index.of(pod, &seen);
        let group = groups.entry(member.key.clone()).or_insert_with(|| Group {
            member,
            pods: Vec::new(),
        });
        group.pods.push((seen, pod));
    }
    let mut reach = Reach::new(&units, &lists.nodes, settings);
    let mut jobs = BTreeMap::new();
    let mut list = Vec::new();
    for group in groups.into_values() {
        let (job, pods) = job(group, settings, &mut reach, now_s);
        if jobs.contains_key(&job.id) {
            notes.push(format!(
                "{} has the id of another job and is left alone",
                pods.name
            ));
            continue;
        }
        list.push((job.submit_s, pods.name.clone(), job));
        jobs.insert(
            list.last().map_or(ExternalId::number(0), |(_, _, job)| job.id),
            pods,
        );
    }
    list.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| by_name(&a.1, &b.1)));
    Observed {
        snapshot: Snapshot {
            version: VERSION,
            taken_s: now_s,
            nodes,
            jobs: list.into_iter().map(|(_, _, job)| job).collect(),
        },
        jobs,
        hosts,
        notes,
    }
}

struct Group<'a> {
    member: Membership,
    pods: Vec<(PodSeen, &'a Pod)>,
}

fn hosts(nodes: &[Node]) -> BTreeMap<String, Host> {
    let host = |node: &Node| {
        let free = node
            .status
            .as_ref()
            .and_then(|status| status.allocatable.as_ref());
        let of = |name: &str| {
            free.and_then(|free| free.get(name))
                .map_or(0, crate::quantity::milli)
        };
        let host = Host {
            hostname: node::labels(node)
                .get(names::HOSTNAME)
                .cloned()
                .unwrap_or_default(),
            cpu_milli_free: of("cpu"),
            memory_bytes_free: of("memory") / 1000,
        };
        Some((node.metadata.name.clone()?, host))
    };
    nodes.iter().filter_map(host).collect()
}

/// Takes what a pod holds from its node.
fn count(
    pod: &Pod,
    settings: &Settings,
    hosts: &mut BTreeMap<String, Host>,
    used: &mut BTreeMap<String, u32>,
) {
    let Some(spec) = &pod.spec else { return };
    let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) else {
        return;
    };
    for (resource, num) in pod::gpus(spec, settings) {
        let entry = used.entry(unit_name(node, &resource, settings)).or_default();
        *entry = entry.saturating_add(num);
    }
    if let Some(host) = hosts.get_mut(node) {
        let (cpu_milli, memory_bytes) = pod::host(spec);
        host.cpu_milli_free = host.cpu_milli_free.saturating_sub(cpu_milli);
        host.memory_bytes_free = host.memory_bytes_free.saturating_sub(memory_bytes);
    }
}

fn seen(
    unit: &Unit,
    lists: &Lists,
    hosts: &BTreeMap<String, Host>,
    used: &BTreeMap<String, u32>,
) -> NodeSeen {
    let name = lists.nodes[unit.row].metadata.name.as_deref().unwrap_or_default();
    let cpu_milli_free = hosts.get(name).map_or(0, |host| host.cpu_milli_free);
    NodeSeen {
        name: unit.name.clone(),
        gpu_type: unit.gpu_type.clone(),
        num_gpus: unit.num_gpus,
        num_gpus_used: used.get(&unit.name).copied().unwrap_or(0).min(unit.num_gpus),
        num_cpus_free: u32::try_from(cpu_milli_free / 1000).unwrap_or(u32::MAX),
        state: unit.state,
        shared: None,
    }
}

fn began_s(pod: &PodSeen) -> i64 {
    let decided_s = pod.decided.as_ref().map(|mark| mark.at_s);
    pod.start_s.or(decided_s).unwrap_or(pod.created_s)
}

fn job(group: Group<'_>, settings: &Settings, reach: &mut Reach<'_>, now_s: i64) -> (JobSeen, JobPods) {
    let Group { member, mut pods } = group;
    pods.sort_by(|(a, _), (b, _)| {
        (a.index, a.name.len(), &a.name, &a.uid).cmp(&(b.index, b.name.len(), &b.name, &b.uid))
    });
    let has_live = pods.iter().any(|(seen, _)| !seen.is_ending);
    pods.retain(|(seen, _)| seen.is_ending != has_live);
    let seen: Vec<PodSeen> = pods.iter().map(|(seen, _)| seen.clone()).collect();
    let mut stand = stand::of(&seen, member.size, settings, now_s);
    let mut gpu_types = Vec::new();
    if let (Phase::Waiting | Phase::Loose, Some((first, pod))) = (&stand.phase, pods.first()) {
        let specs: BTreeSet<String> = pods
            .iter()
            .filter_map(|(_, pod)| pod.spec.as_ref())
            .map(crate::constraint::key)
            .collect();
        let found = match (&pod.spec, specs.len()) {
            (Some(spec), 1) => reach.types(spec, &first.resource),
            _ => Err(Phase::Foreign {
                reason: "has pods that may run on different nodes".into(),
            }),
        };
        match found {
            Ok(types) => gpu_types = types,
            Err(phase) => stand = Stand::without_seats(phase, &seen),
        }
    }
    let first = pods.first().map(|(_, pod)| *pod);
    let account = match &settings.tenant_label {
        None => member.key.namespace.clone(),
        Some(label) => first
            .and_then(|pod| pod::word(pod, label))
            .unwrap_or_default()
            .to_owned(),
    };
    let num_parts = stand
        .seats
        .iter()
        .fold(0_u32, |sum, (_, num)| sum.saturating_add(*num));
    let num_pods = u32::try_from(seen.len())
        .unwrap_or(u32::MAX)
        .max(num_parts)
        .max(1);
    let cpu_milli = seen
        .iter()
        .fold(0_u64, |sum, pod| sum.saturating_add(pod.cpu_milli));
    let created_s = seen.iter().map(|pod| pod.created_s).min();
    let limit_s = seen.iter().filter_map(|pod| pod.limit_s).max().or(member.limit_s);
    let job = JobSeen {
        id: member.id,
        start_s: match stand.phase {
            // Whose kubelet has told nothing yet began when it was let go.
            Phase::Running => seen.iter().map(began_s).max(),
            _ => None,
        },
        phase: stand.phase,
        account,
        user: String::new(),
        submit_s: member.created_s.or(created_s).unwrap_or(now_s),
        limit_s,
        num_nodes: num_pods,
        gpus_per_node: seen.first().map_or(1, |pod| pod.num_gpus.max(1)),
        is_packed: num_pods > 1,
        share: None,
        gpu_type: None,
        gpu_types,
        num_cpus: u32::try_from(cpu_milli.div_ceil(1000)).unwrap_or(u32::MAX),
        nodes: stand
            .seats
            .iter()
            .flat_map(|(unit, num)| std::iter::repeat_n(unit.clone(), *num as usize))
            .collect(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
    };
    let pods = JobPods {
        name: format!("{}/{}", member.key.namespace, member.key.name),
        pods: seen,
        seats: stand.seats,
        duty: stand.duty,
    };
    (job, pods)
}
