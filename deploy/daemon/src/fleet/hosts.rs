//! CPUs and host memory of nodes in the tables, what of it each job has, and the nodes that rules and refusals leave to a job.
//!
//! The tables have what comes with each GPU, in thousandths of a core and MiB, rounded up: a node has a thousandth and a MiB more
//! for each of its GPUs than is there, so that rounding closes no node, and so little of a core and of memory opens none.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster::Slice;
use pleach_scheduler::{AllowedNodes, Cluster, NodeId, Resources, Tasks};

use super::offer::{Inputs, Offer};
use crate::memory::Memory;
use crate::snapshot::{JobSeen, NodeSeen, Snapshot};
use pleach_site::slurm::expand;

/// Capacity of a node in the tables: cores and GiB; 0 where it was not looked at.
pub(super) fn capacity(node: &NodeSeen, num_gpus: u32) -> (f64, f64) {
    let slack = f64::from(num_gpus);
    node.host.map_or((0.0, 0.0), |host| {
        (
            f64::from(host.num_cpus) + slack / 1000.0,
            (f64::from(host.memory_mib) + slack) / 1024.0,
        )
    })
}

/// What jobs ask of hosts, and the nodes that they may have.
pub(super) struct Hosts<'a> {
    is_known: bool,
    rows: BTreeMap<&'a str, NodeId>,
    num_nodes: u32,
    /// Nodes that each rule closes. `[rule]`
    closed: Vec<Vec<NodeId>>,
    /// Sets by rules and nodes that refused.
    sets: BTreeMap<(&'a [u32], Vec<NodeId>), AllowedNodes>,
}

impl<'a> Hosts<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, offers: &[Offer<'a>]) -> Hosts<'a> {
        let names = offers.iter().map(|offer| offer.seen.name.as_str());
        let rows: BTreeMap<&str, NodeId> = names.zip((0..).map(NodeId)).collect();
        // A list that cannot be read closes every node: a job under that rule waits, and the reason is shown.
        let closed = |closed: &str| match expand(closed) {
            Ok(names) => names
                .iter()
                .filter_map(|name| rows.get(name.as_str()).copied())
                .collect(),
            Err(_) => rows.values().copied().collect(),
        };
        Hosts {
            is_known: snapshot.nodes.iter().any(|node| node.host.is_some()),
            num_nodes: offers.len() as u32,
            closed: snapshot
                .site
                .rules
                .iter()
                .map(|rule| closed(&rule.closed))
                .collect(),
            rows,
            sets: BTreeMap::new(),
        }
    }

    /// The nodes that a job may have beside those where it is.
    fn allowed(
        &mut self,
        cluster: &mut Cluster,
        (job, memory): (&'a JobSeen, &Memory),
        now_s: i64,
        placement: Option<&[Slice]>,
    ) -> AllowedNodes {
        let refusals = memory.refusals(job).into_iter();
        let refused = refusals.flat_map(|refusals| refusals.at(now_s));
        let refused: Vec<NodeId> = refused
            .filter_map(|(node, _)| self.rows.get(node).copied())
            .collect();
        if job.terms.rules.is_empty() && refused.is_empty() {
            return AllowedNodes::ALL;
        }
        let key = (job.terms.rules.as_slice(), refused);
        let set = match self.sets.get(&key) {
            Some(known) => *known,
            None => {
                let mut open = vec![true; self.num_nodes as usize];
                let of_rules = key.0.iter().filter_map(|rule| self.closed.get(*rule as usize));
                for node in of_rules.flatten().chain(&key.1) {
                    open[node.index()] = false;
                }
                let open = (0..self.num_nodes).map(NodeId).filter(|node| open[node.index()]);
                // More sets than there are numbers: the batch system refuses, and is remembered.
                let set = cluster.allow(open).unwrap_or(AllowedNodes::ALL);
                self.sets.insert(key, set);
                set
            }
        };
        // A job that runs where it may no longer be stays there.
        let stays = placement.is_some_and(|at| at.iter().any(|slice| !cluster.allows(set, slice.node)));
        if stays { AllowedNodes::ALL } else { set }
    }

    /// What a job asks for with each of its GPUs.
    pub(super) fn resources(
        &mut self,
        cluster: &mut Cluster,
        (job, memory, tasks): (&'a JobSeen, &Memory, Tasks),
        now_s: i64,
        placement: Option<&[Slice]>,
    ) -> Resources {
        let nodes = self.allowed(cluster, (job, memory), now_s, placement);
        let per_gpu = if self.is_known { per_gpu(job) } else { (0.0, 0.0) };
        let tasks = match tasks {
            // Gangs that are counted node by node lie on one node by their own word.
            // So do leases: a replica is one part.
            Tasks::ANY
                if job.share.is_none()
                    && (self.is_known || !nodes.is_all() || job.terms.is_lease && job.num_gpus() > 1) =>
            {
                Tasks {
                    nodes_max: 1,
                    ..Tasks::ANY
                }
            }
            tasks => tasks,
        };
        Resources {
            gpu_milli: job.gpu_milli(),
            tasks,
            nodes,
            cpu_cores: per_gpu.0,
            memory_gib: per_gpu.1,
            ..Resources::WHOLE_GPU
        }
    }
}

/// Cores and GiB that come with each GPU of a job.
fn per_gpu(job: &JobSeen) -> (f64, f64) {
    let (inputs, gpus) = (Inputs::of(job), f64::from(job.gpus_per_node.max(1)));
    // Whole thousandths and MiB, so that nothing is rounded twice.
    let up = |all: f64| (all / gpus).ceil();
    (
        (up(f64::from(inputs.num_cpus) * 1000.0) / 1000.0).min(1e6),
        (up(f64::from(inputs.memory_mib)) / 1024.0).min(1e6),
    )
}

/// What nodes have left while jobs get what comes with their GPUs, thousandths of a core and MiB. `[node]`
pub(super) struct Left(Vec<(u32, u32)>);

impl Left {
    pub(super) fn of(cluster: &Cluster) -> Left {
        Left(
            cluster
                .nodes()
                .iter()
                .map(|node| (node.cpu_milli, node.memory_mib))
                .collect(),
        )
    }

    /// What comes with each GPU of a job that has them: what it asked for, or what is there. Its GPUs are its own in any case.
    pub(super) fn take(&mut self, job: &JobSeen, placement: &[Slice]) -> (u32, u32) {
        let asked = per_gpu(job);
        let (mut cpu_milli, mut memory_mib) = (
            (asked.0 * 1000.0).round() as u32,
            (asked.1 * 1024.0).round() as u32,
        );
        for slice in placement {
            let (cpu, memory) = self.0[slice.node.index()];
            cpu_milli = cpu_milli.min(cpu / slice.num_gpus().max(1));
            memory_mib = memory_mib.min(memory / slice.num_gpus().max(1));
        }
        for slice in placement {
            let (cpu, memory) = &mut self.0[slice.node.index()];
            *cpu -= cpu_milli * slice.num_gpus();
            *memory -= memory_mib * slice.num_gpus();
        }
        (cpu_milli, memory_mib)
    }
}

/// What closes nodes to a waiting job apart from GPUs, in words: rules, CPUs, host memory, and refusals of `memory`; empty where
/// nothing does.
#[must_use]
pub fn closed_to(job: &JobSeen, snapshot: &Snapshot, memory: Option<&Memory>) -> String {
    let closed: Vec<(Option<BTreeSet<String>>, &str)> = job
        .terms
        .rules
        .iter()
        .filter_map(|rule| snapshot.site.rules.get(*rule as usize))
        .map(|rule| {
            let names = expand(&rule.closed).ok();
            (names.map(|names| names.into_iter().collect()), rule.why.as_str())
        })
        .collect();
    let asks = Inputs::of(job);
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for node in &snapshot.nodes {
        let closes =
            |names: &Option<BTreeSet<String>>| names.as_ref().is_none_or(|names| names.contains(&node.name));
        let of_rule = closed.iter().find(|(names, _)| closes(names));
        let refusal = memory
            .and_then(|memory| memory.refusals(job))
            .and_then(|refusals| refusals.of(&node.name, snapshot.taken_s));
        let why = match (of_rule, refusal, node.host) {
            (Some((_, why)), ..) => (*why).to_owned(),
            (_, Some(refusal), _) => format!("refused it: {}", refusal.reason),
            (_, _, Some(host)) if host.num_cpus < asks.num_cpus => {
                format!("has {} CPUs, and it asks for {}", host.num_cpus, asks.num_cpus)
            }
            (_, _, Some(host)) if host.memory_mib < asks.memory_mib => {
                format!(
                    "has {} MiB of memory, and it asks for {}",
                    host.memory_mib, asks.memory_mib
                )
            }
            (_, _, Some(_)) if node.num_cpus_free < asks.num_cpus => {
                format!("has {} of {} CPUs free", node.num_cpus_free, asks.num_cpus)
            }
            (_, _, Some(host)) if host.memory_mib_free < asks.memory_mib => {
                format!(
                    "has {} of {} MiB of memory free",
                    host.memory_mib_free, asks.memory_mib
                )
            }
            _ => continue,
        };
        reasons.entry(why).or_default().push(&node.name);
    }
    let line = |(why, nodes): (String, Vec<&str>)| match nodes.as_slice() {
        [node] => format!("{node} {why}"),
        [first, .., last] => format!("{} nodes ({first} to {last}): each {why}", nodes.len()),
        [] => why,
    };
    let lines: Vec<String> = reasons.into_iter().map(line).collect();
    lines.join("; ")
}
