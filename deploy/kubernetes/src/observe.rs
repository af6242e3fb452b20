//! From lists of nodes, pods and Jobs to the snapshot that a round decides on: a function without clock, network or state.
//!
//! What the tables cannot say is left to kube-scheduler, as in the daemon for Slurm: a held pod that fits nowhere is let go
//! without a node. What is only not ready yet stays held.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota, Toleration,
};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Site, Snapshot, VERSION};
use pleach_scheduler::ExternalId;
use pleach_scheduler::cluster::NodeState;

use crate::arrival::by_name;
use crate::asks::{self, Amounts, Host};
use crate::clock::Clock;
use crate::config::Settings;
use crate::driven_job::{DrivenJob, Group, Sight, job};
use crate::gang::{Jobs, Key};
use crate::job_pods::JobPods;
use crate::leaving;
use crate::names;
use crate::node::{self, Unit, unit_name};
use crate::pod::{self, PodSeen};
use crate::quota;
use crate::reach::{self, Reach};
use crate::reads::{Known, Reading, Reads, Unmade};
use crate::seats::Traces;
use crate::standing::Duty;
use crate::suspended::maker::Maker;
use crate::suspended::{Classes, Other, Owner, Owners};
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
    pub nodes: Vec<Arc<Node>>,
    /// All pods; those that have ended may be missing.
    pub pods: Vec<Arc<Pod>>,
    /// All Jobs.
    pub jobs: Vec<Arc<Job>>,
    /// Objects of other kinds that are suspended by us, or were let go.
    pub others: Vec<Other>,
    /// Claims of pods that wait.
    pub claims: Vec<Arc<PersistentVolumeClaim>>,
    /// Volumes that these are bound to.
    pub volumes: Vec<Arc<PersistentVolume>>,
    /// Classes of priority, where Jobs wait without pods.
    pub classes: Vec<Arc<PriorityClass>>,
    /// Quotas of namespaces, where Jobs wait without pods.
    pub quotas: Vec<Arc<ResourceQuota>>,
    /// What could not be read and a round does without.
    pub unread: Vec<String>,
    /// What Kueue has, where it gets an order.
    pub kueue: Option<KueueLists>,
}

/// A round's view of the cluster.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What the policy decides on.
    pub snapshot: Snapshot,
    /// Pods behind the jobs of the snapshot.
    pub jobs: BTreeMap<ExternalId, Arc<JobPods>>,
    /// Nodes by name.
    pub hosts: Arc<BTreeMap<String, Host>>,
    /// GPUs of each unit that are free and promised to no pod.
    pub free: BTreeMap<String, u32>,
    /// For the next look.
    pub traces: Traces,
    /// Workloads that wait for Kueue, by arrival; none where it gets no order.
    pub line: Vec<Place>,
    /// Pods that came by the webhook; none where it is not known.
    pub unheld: Option<Unheld>,
    /// What an operator should know.
    pub notes: Vec<String>,
}

impl Observed {
    /// Whether nothing is under way: all that was let go has begun, and nothing is to be done whatever the policy says.
    pub(crate) fn is_settled(&self) -> bool {
        self.jobs.values().all(|job| {
            let is_there = job.is_made || job.owners.iter().all(|owner| owner.is_suspended);
            let stands = |pod: &PodSeen| !pod.is_ending && (pod.is_held() || pod.has_begun);
            is_there && job.duty == Duty::None && job.pods.iter().all(stands)
        })
    }

    /// Jobs that were let go and have no pods yet.
    pub(crate) fn num_unmade(&self) -> usize {
        let is_let_go =
            |job: &&Arc<JobPods>| !job.is_made && job.owners.iter().all(|owner| !owner.is_suspended);
        self.jobs.values().filter(is_let_go).count()
    }
}

/// Makes the view of a first look.
#[must_use]
pub fn observe(lists: &Lists, settings: &Settings, now_s: i64) -> Observed {
    observe_after(&Traces::default(), lists, settings, now_s)
}

/// Makes the view; `before` is [`Observed::traces`] of the last one.
#[must_use]
pub fn observe_after(before: &Traces, lists: &Lists, settings: &Settings, now_s: i64) -> Observed {
    let mut reading = Reading {
        before: &Reads::default(),
        has_same_classes: false,
        now: Reads::default(),
        settings,
    };
    look(before, lists, settings, &Clock::at(now_s), &mut reading)
}

/// The same, at the time of a clock, with what was read before.
pub(crate) fn look(
    before: &Traces,
    lists: &Lists,
    settings: &Settings,
    clock: &Clock,
    reading: &mut Reading<'_>,
) -> Observed {
    let (mut units, mut notes) = node::units(&lists.nodes, settings);
    notes.extend(lists.unread.iter().cloned());
    let live = lists.pods.iter().filter(|pod| !pod::has_ended(pod));
    let live: Vec<Known> = live.map(|pod| reading.of(pod)).collect();
    let (hosts, mut usage) = held(&lists.nodes, &live, settings);
    let mut owners = Owners::new((&lists.jobs, &lists.others), &before.begun, settings);
    let unmade = unmade(lists, &owners, clock, reading);
    let tolerations = tolerations((&live, &unmade), lists, settings);
    let barred = reach::barred(&lists.nodes, &tolerations, settings);
    reach::close(&mut units, &barred);
    let up = up(&units, lists);
    let mut nodes: Vec<NodeSeen> = units.iter().map(|unit| seen(unit, lists, &hosts)).collect();
    let index = Jobs::new(lists.jobs.iter().map(Arc::as_ref), settings.parallel_jobs);
    let index = index.with_ray_jobs(owners.ray_jobs());
    let line = lists.kueue.as_ref().map(|kueue| Workloads::read(kueue, settings));
    let groups = groups((&live, &unmade), (&index, &owners), line.as_ref(), settings);
    let mut sight = Sight {
        reach: Reach::new(&units, &lists.nodes, &hosts, &barred),
        volumes: Volumes::new(&lists.claims, &lists.volumes),
        up: &up,
        nodes: &nodes,
        settings,
        clock,
    };
    let (mut jobs, mut traces) = (BTreeMap::new(), Traces::default());
    traces.begun.append(&mut owners.begun);
    let mut list = Vec::new();
    let mut remarks: BTreeSet<String> = BTreeSet::new();
    let mut leaving = BTreeMap::new();
    for group in groups.into_values() {
        let id = group.member.id;
        let DrivenJob {
            mut job,
            mut pods,
            lost,
            size,
            ending,
        } = job(group, before, &mut sight);
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
        leaving::count(&job.phase, (&pods, &ending), (settings, clock), &mut leaving);
        traces.lost.extend((!lost.is_empty()).then_some((id, lost)));
        traces.sizes.extend(size.map(|size| (id, size)));
        traces.begun.extend(pods.begun());
        remarks.extend(pods.remark.clone());
        list.push((job.submit_s, pods.name.clone(), job));
        jobs.insert(id, Arc::new(pods));
    }
    let mut places = Vec::new();
    if let (Some(kueue), Some(line)) = (&lists.kueue, line) {
        let (found, more) = workloads((kueue, line), &mut sight, &mut jobs, &mut list);
        notes.extend(more);
        places = found;
    }
    let rules = sight.reach.into_rules();
    list.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| by_name(&a.1, &b.1)));
    notes.extend(some(remarks));
    let allowances = quota::bind((&lists.quotas, &lists.pods), &unmade, &jobs, &mut list);
    let racks = node::racks(&units, &lists.nodes);
    // Nodes of a rack stand together in the tables.
    nodes.sort_by(|a, b| racks.get(&a.name).cmp(&racks.get(&b.name)));
    let free = counted(&mut nodes, &usage, &mut leaving);
    Observed {
        snapshot: Snapshot {
            version: VERSION,
            taken_s: clock.kept_s(),
            site: Site {
                rules,
                allowances,
                racks,
                leaving,
            },
            nodes,
            jobs: list.into_iter().map(|(_, _, job)| job).collect(),
        },
        jobs,
        hosts: Arc::new(hosts),
        free,
        traces,
        line: places,
        unheld: None,
        notes,
    }
}

/// The pods that Jobs would make which were suspended or let go and have none, with the Jobs.
fn unmade(lists: &Lists, owners: &Owners<'_>, clock: &Clock, reading: &mut Reading<'_>) -> Vec<Unmade> {
    let (classes, settings) = (Classes::new(&lists.classes), reading.settings);
    without_pods(&lists.pods, owners)
        .filter(|(owner, _)| owner.is_to_have_pods(settings, clock))
        .map(|(owner, maker)| (owner.clone(), reading.made(maker, owner, &classes)))
        .collect()
}

/// Adds what waits for Kueue; its places in the line, and what an operator should know.
fn workloads(
    (kueue, line): (&KueueLists, Workloads),
    sight: &mut Sight<'_>,
    jobs: &mut BTreeMap<ExternalId, Arc<JobPods>>,
    list: &mut Vec<(i64, String, JobSeen)>,
) -> (Vec<Place>, Vec<String>) {
    for (job, pods) in workload_queue::waiting(kueue, &line, sight.nodes, &mut sight.reach, sight.settings) {
        // Pods of an attempt before are still ending.
        if let Entry::Vacant(place) = jobs.entry(job.id) {
            list.push((job.submit_s, pods.name.clone(), job));
            place.insert(Arc::new(pods));
        }
    }
    (line.places, line.notes)
}

/// Hosts, and what pods hold of them and of units.
fn held(nodes: &[Arc<Node>], live: &[Known], settings: &Settings) -> (BTreeMap<String, Host>, Usage) {
    let (mut hosts, mut usage) = (hosts(nodes), Usage::default());
    for pod in live {
        count(pod, settings, &mut hosts, &mut usage);
    }
    (hosts, usage)
}

/// Nodes of units that take jobs, by the units' names.
fn up<'a>(units: &'a [Unit], lists: &'a Lists) -> BTreeMap<&'a str, &'a Node> {
    let up = units.iter().filter(|unit| unit.state == NodeState::Up);
    up.map(|unit| (unit.name.as_str(), &*lists.nodes[unit.row]))
        .collect()
}

/// Writes the GPUs in use into units, and into `leaving` those that are given back and promised to no pod; what is free of each.
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

/// The Jobs that were suspended or let go and have no pods.
pub(crate) fn without_pods<'a, 'b>(
    pods: &[Arc<Pod>],
    owners: &'b Owners<'a>,
) -> impl Iterator<Item = &'b (Owner, Maker<'a>)> {
    let is_live = |pod: &&Arc<Pod>| !pod::has_ended(pod) && pod.metadata.deletion_timestamp.is_none();
    let live = pods.iter().filter(is_live);
    let live: BTreeSet<&str> = live
        .filter_map(|pod| Some(owners.of(pod)?.uid.as_str()))
        .collect();
    owners
        .held()
        .filter(move |(owner, _)| !live.contains(owner.uid.as_str()))
}

/// Pods that are driven, and those that are not made yet, by the jobs that they are part of.
fn groups<'a>(
    (live, unmade): (&'a [Known], &'a [Unmade]),
    (index, owners): (&Jobs<'_>, &Owners<'_>),
    line: Option<&Workloads>,
    settings: &Settings,
) -> BTreeMap<Key, Group<'a>> {
    let mut groups: BTreeMap<Key, Group<'_>> = BTreeMap::new();
    let pods = live.iter().map(|known| (known, owners.of(&known.0), true));
    let unmade = unmade
        .iter()
        .flat_map(|(owner, pods)| pods.iter().map(move |known| (known, Some(owner), false)));
    for ((pod, read), owner, is_made) in pods.chain(unmade) {
        let Some(seen) = &read.seen else {
            continue;
        };
        if !settings.drives(&seen.namespace) || pod::opts_out(pod, settings) && !seen.is_held() {
            continue;
        }
        let mut member = index.of(pod, seen);
        // One job from when it waits to when it ends.
        if let Some((id, name)) = line.and_then(|line| line.owner(pod)) {
            (member.id, member.key.by, member.key.name) = (id, "workload", name);
        }
        let is_alone = member.key.by == "pod";
        let group = groups.entry(member.key.clone()).or_insert_with(|| Group {
            member,
            pods: Vec::new(),
            is_made: true,
            owners: Vec::new(),
        });
        // Of a Job whose pods are jobs of their own one stands for all until they are made.
        if is_alone && !is_made && !group.pods.is_empty() {
            continue;
        }
        group.is_made &= is_made;
        group
            .owners
            .extend(owner.filter(|owner| !group.owners.contains(owner)).cloned());
        group.pods.push((seen.clone(), &**pod));
    }
    groups
}

fn hosts(nodes: &[Arc<Node>]) -> BTreeMap<String, Host> {
    let host = |node: &Arc<Node>| {
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
fn count((pod, read): &Known, settings: &Settings, hosts: &mut BTreeMap<String, Host>, usage: &mut Usage) {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let Some(node) = node.filter(|name| !name.is_empty()) else {
        return;
    };
    for (resource, num) in &read.gpus {
        usage.add_pod(&unit_name(node, resource, settings), *num);
    }
    if let Some(host) = hosts.get_mut(node) {
        host.take(&read.asks, &read.ports);
    }
}

/// What driven GPU pods tolerate, each list once.
fn tolerations<'a>(
    (live, unmade): (&'a [Known], &'a [Unmade]),
    lists: &'a Lists,
    settings: &Settings,
) -> Vec<&'a [Toleration]> {
    let is_driven =
        |(pod, _): &&Known| settings.drives(pod.metadata.namespace.as_deref().unwrap_or_default());
    let pods = live
        .iter()
        .filter(is_driven)
        .chain(unmade.iter().flat_map(|(_, pods)| pods))
        .filter(|(_, read)| !read.gpus.is_empty())
        .filter_map(|(pod, _)| pod.spec.as_ref());
    let workloads = lists.kueue.iter().flat_map(|kueue| &kueue.workloads);
    let sets = workloads.flat_map(|workload| &workload.spec.pod_sets);
    let templates = sets.filter_map(|set| set.template.spec.as_ref());
    let templates = templates.filter(|spec| !pod::gpus(spec, settings).is_empty());
    let mut different: Vec<&[Toleration]> = Vec::new();
    for spec in pods.chain(templates) {
        let own = spec.tolerations.as_deref().unwrap_or_default();
        if !own.is_empty() && !different.contains(&own) {
            different.push(own);
        }
    }
    different
}

/// A unit as if all its GPUs were free.
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
