//! From lists of nodes, pods and Jobs to the snapshot that a round decides on: a function without clock, network or state.
//!
//! What the tables cannot say is left to kube-scheduler, as in the daemon for Slurm: a held pod that nobody could place is let go
//! without a node. What is only not ready yet stays held.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, Toleration};
use pleach_daemon::snapshot::{NodeSeen, Site, Snapshot, VERSION};
use pleach_scheduler::ExternalId;
use pleach_scheduler::cluster::NodeState;

use crate::arrival::by_name;
use crate::asks::{self, Amounts, Host};
use crate::config::Settings;
use crate::driven_job::{DrivenJob, Group, Sight, job};
use crate::gang::{Jobs, Key};
use crate::job_pods::JobPods;
use crate::leaving;
use crate::names;
use crate::node::{self, Unit, unit_name};
use crate::pod;
use crate::reach::{self, Reach};
use crate::seats::Lost;
use crate::unheld::Unheld;
use crate::usage::Usage;
use crate::volume::Volumes;
use crate::workload_queue::{self, KueueLists, Place, Workloads};

/// Most Jobs of a look that something is said about.
const REMARKS_MAX: usize = 100;

/// What the API server showed.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All pods; those that have ended may be missing.
    pub pods: Vec<Pod>,
    /// All Jobs.
    pub jobs: Vec<Job>,
    /// Claims of pods that wait.
    pub claims: Vec<PersistentVolumeClaim>,
    /// Volumes that these are bound to.
    pub volumes: Vec<PersistentVolume>,
    /// What could not be read and a round does without.
    pub unread: Vec<String>,
    /// What Kueue has, where it is told an order.
    pub kueue: Option<KueueLists>,
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
    /// GPUs of each unit that nobody holds and that are promised to nobody.
    pub free: BTreeMap<String, u32>,
    /// Places that running gangs have lost, for the next look.
    pub lost: BTreeMap<ExternalId, Lost>,
    /// Workloads that wait for Kueue, by arrival; none where it is told no order.
    pub line: Vec<Place>,
    /// Pods that came by the webhook; none where it is not known.
    pub unheld: Option<Unheld>,
    /// What an operator should know.
    pub notes: Vec<String>,
}

/// Makes the view of somebody who has not looked before.
#[must_use]
pub fn observe(lists: &Lists, settings: &Settings, now_s: i64) -> Observed {
    observe_after(&BTreeMap::new(), lists, settings, now_s)
}

/// Makes the view; `before` is [`Observed::lost`] of the last one.
#[must_use]
pub fn observe_after(
    before: &BTreeMap<ExternalId, Lost>,
    lists: &Lists,
    settings: &Settings,
    now_s: i64,
) -> Observed {
    let (mut units, mut notes) = node::units(&lists.nodes, settings);
    notes.extend(lists.unread.iter().cloned());
    let mut hosts = hosts(&lists.nodes);
    let mut usage = Usage::default();
    for pod in lists.pods.iter().filter(|pod| !pod::has_ended(pod)) {
        count(pod, settings, &mut hosts, &mut usage);
    }
    let barred = reach::barred(&lists.nodes, &tolerations(lists, settings), settings);
    reach::close(&mut units, &barred);
    let up = units.iter().filter(|unit| unit.state == NodeState::Up);
    let up: BTreeMap<&str, &Node> = up
        .map(|unit| (unit.name.as_str(), &lists.nodes[unit.row]))
        .collect();
    let mut nodes: Vec<NodeSeen> = units.iter().map(|unit| seen(unit, lists, &hosts)).collect();
    let index = Jobs::new(&lists.jobs, settings.parallel_jobs);
    let line = lists.kueue.as_ref().map(|kueue| Workloads::read(kueue, settings));
    let groups = groups(lists, &index, line.as_ref(), settings);
    let mut sight = Sight {
        reach: Reach::new(&units, &lists.nodes, &hosts, &barred),
        volumes: Volumes::new(&lists.claims, &lists.volumes),
        up: &up,
        nodes: &nodes,
        settings,
        now_s,
    };
    let (mut jobs, mut lost) = (BTreeMap::new(), BTreeMap::new());
    let mut list = Vec::new();
    let mut remarks: BTreeSet<String> = BTreeSet::new();
    let mut leaving = BTreeMap::new();
    for group in groups.into_values() {
        let id = group.member.id;
        let DrivenJob {
            mut job,
            mut pods,
            lost: seats,
            ending,
        } = job(group, before.get(&id).map_or(&[], Vec::as_slice), &mut sight);
        if jobs.contains_key(&id) {
            notes.push(format!(
                "{} has the id of another job and is left alone",
                pods.name
            ));
            continue;
        }
        if line.is_some() {
            workload_queue::admitted(&mut job, &mut pods);
        }
        usage.add_job(&job.phase, &pods, &ending, settings);
        leaving::count(&job.phase, (&pods, &ending), (settings, now_s), &mut leaving);
        if !seats.is_empty() {
            lost.insert(id, seats);
        }
        remarks.extend(pods.remark.clone());
        list.push((job.submit_s, pods.name.clone(), job));
        jobs.insert(id, pods);
    }
    let mut places = Vec::new();
    if let (Some(kueue), Some(line)) = (&lists.kueue, line) {
        for (job, pods) in workload_queue::waiting(kueue, &line, sight.nodes, &mut sight.reach, settings) {
            // Pods of an attempt before are still ending.
            if jobs.contains_key(&job.id) {
                continue;
            }
            jobs.insert(job.id, pods.clone());
            list.push((job.submit_s, pods.name, job));
        }
        notes.extend(line.notes);
        places = line.places;
    }
    let rules = sight.reach.into_rules();
    list.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| by_name(&a.1, &b.1)));
    notes.extend(some(remarks));
    let free = counted(&mut nodes, &usage, &mut leaving);
    Observed {
        snapshot: Snapshot {
            version: VERSION,
            taken_s: now_s,
            site: Site {
                leaving,
                rules,
                ..Site::default()
            },
            nodes,
            jobs: list.into_iter().map(|(_, _, job)| job).collect(),
        },
        jobs,
        hosts,
        free,
        lost,
        line: places,
        unheld: None,
        notes,
    }
}

/// Writes into units what of them is in use, and into `leaving` what is given back to nobody in particular; what is free of each.
fn counted(
    nodes: &mut [NodeSeen],
    usage: &Usage,
    leaving: &mut BTreeMap<String, u32>,
) -> BTreeMap<String, u32> {
    let mut free = BTreeMap::new();
    for node in nodes {
        node.num_gpus_used = usage.in_tables(&node.name).min(node.num_gpus);
        free.insert(node.name.clone(), usage.left(&node.name, node.num_gpus));
        if let Some(num) = leaving.get_mut(&node.name) {
            *num = usage.leaving(&node.name, node.num_gpus, *num);
        }
    }
    leaving.retain(|_, num| *num > 0);
    free
}

/// The first of many remarks, and how many more there are.
fn some(remarks: BTreeSet<String>) -> Vec<String> {
    let num_more = remarks.len().saturating_sub(REMARKS_MAX);
    let mut some: Vec<String> = remarks.into_iter().take(REMARKS_MAX).collect();
    if num_more > 0 {
        some.push(format!(
            "the same or the like of {num_more} more: `why-not` tells"
        ));
    }
    some
}

/// Pods that are driven, by the jobs that they are part of.
fn groups<'a>(
    lists: &'a Lists,
    index: &Jobs<'_>,
    line: Option<&Workloads>,
    settings: &Settings,
) -> BTreeMap<Key, Group<'a>> {
    let mut groups: BTreeMap<Key, Group<'_>> = BTreeMap::new();
    for pod in lists.pods.iter().filter(|pod| !pod::has_ended(pod)) {
        let Some(seen) = pod::read(pod, settings) else {
            continue;
        };
        if !settings.drives(&seen.namespace) || pod::opts_out(pod, settings) && !seen.is_held() {
            continue;
        }
        let mut member = index.of(pod, &seen);
        // One job from when it waits to when it ends.
        if let Some((id, name)) = line.and_then(|line| line.owner(pod)) {
            (member.id, member.key.by, member.key.name) = (id, "workload", name);
        }
        let group = groups.entry(member.key.clone()).or_insert_with(|| Group {
            member,
            pods: Vec::new(),
        });
        group.pods.push((seen, pod));
    }
    groups
}

fn hosts(nodes: &[Node]) -> BTreeMap<String, Host> {
    let host = |node: &Node| {
        let free = node
            .status
            .as_ref()
            .and_then(|status| status.allocatable.as_ref());
        let all = free.into_iter().flatten();
        let has: Amounts = all
            .map(|(name, quantity)| (name.clone(), asks::milli(quantity)))
            .collect();
        let host = Host {
            hostname: node::labels(node)
                .get(names::HOSTNAME)
                .cloned()
                .unwrap_or_default(),
            free: has.clone(),
            has,
            ports: Vec::new(),
        };
        Some((node.metadata.name.clone()?, host))
    };
    nodes.iter().filter_map(host).collect()
}

/// Takes what a pod holds from its node.
fn count(pod: &Pod, settings: &Settings, hosts: &mut BTreeMap<String, Host>, usage: &mut Usage) {
    let Some(spec) = &pod.spec else { return };
    let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) else {
        return;
    };
    for (resource, num) in pod::gpus(spec, settings) {
        usage.add_pod(&unit_name(node, &resource, settings), num);
    }
    if let Some(host) = hosts.get_mut(node) {
        host.take(&asks::amounts(spec, settings), &asks::ports(spec));
    }
}

/// What driven GPU pods tolerate, each list once.
fn tolerations<'a>(lists: &'a Lists, settings: &Settings) -> Vec<&'a [Toleration]> {
    let is_driven = |pod: &&Pod| {
        !pod::has_ended(pod) && settings.drives(pod.metadata.namespace.as_deref().unwrap_or_default())
    };
    let pods = lists
        .pods
        .iter()
        .filter(is_driven)
        .filter_map(|pod| pod.spec.as_ref());
    let workloads = lists.kueue.iter().flat_map(|kueue| &kueue.workloads);
    let sets = workloads.flat_map(|workload| &workload.spec.pod_sets);
    let templates = sets.filter_map(|set| set.template.spec.as_ref());
    let mut different: Vec<&[Toleration]> = Vec::new();
    for spec in pods.chain(templates) {
        let own = spec.tolerations.as_deref().unwrap_or_default();
        if !own.is_empty() && !different.contains(&own) && !pod::gpus(spec, settings).is_empty() {
            different.push(own);
        }
    }
    different
}

/// A unit as if nobody held GPUs of it.
fn seen(unit: &Unit, lists: &Lists, hosts: &BTreeMap<String, Host>) -> NodeSeen {
    let name = lists.nodes[unit.row].metadata.name.as_deref().unwrap_or_default();
    let cpu_milli_free = hosts.get(name).and_then(|host| host.free.get("cpu"));
    let cpu_milli_free = cpu_milli_free.copied().unwrap_or(0);
    NodeSeen {
        name: unit.name.clone(),
        gpu_type: unit.gpu_type.clone(),
        num_gpus: unit.num_gpus,
        num_gpus_used: 0,
        num_cpus_free: u32::try_from(cpu_milli_free / 1000).unwrap_or(u32::MAX),
        host: None,
        state: unit.state,
        shared: None,
    }
}
