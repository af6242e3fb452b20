//! From a snapshot to the tables in which policies decide, and from their rows back to names.
//!
//! The tables hold the GPUs that the daemon may give: free ones, and those under jobs that it knows. GPUs under jobs that
//! are left to the batch system are not in them. A job of several nodes or pods is a gang of tasks: each of its parts lies on one
//! node, pods of a gang may share nodes, and Slurm's nodes are different ones. All others get one node. Nodes whose GPUs are given
//! in shares are a GPU type of their own in the tables, on which nothing but shares can run, and shares run nowhere else.

mod classes;
mod hosts;
mod offer;
mod placed;
mod sizes;
mod stand_ins;
mod types;

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{NodeState, Slice};
use pleach_scheduler::record::{JobRecord, RunRecord};
use pleach_scheduler::{
    ActionKind, ActionSet, Capabilities, ClassId, Cluster, JobId, NodeId, Resources, Submission, TenantId,
    Time,
};

pub use self::classes::Fleet;
pub use self::hosts::closed_to;

use self::hosts::Hosts;
use self::offer::{Inputs, Offer, named, offers};
use self::sizes::Sizes;
pub(crate) use self::sizes::tasks_of;
pub(crate) use self::types::{ANY, whole, whole_nodes};
use self::types::{classes, emptied, masks, masks_of, names, spec};
use crate::config::RoundSettings;
use crate::error::Error;
use crate::exclusions::Exclusions;
use crate::memory::Memory;
use crate::snapshot::{Allowance, JobSeen, NodeSeen, Phase, Snapshot};

/// What the cluster can do, by the settings.
#[must_use]
pub fn capabilities(settings: &RoundSettings) -> Capabilities {
    let mut capabilities = Capabilities {
        restart_cost_s: settings.restart_cost_s,
        checkpoint_interval_s: settings.checkpoint_interval_s,
        // Jobs that write checkpoints at intervals of their own write none when they are stopped.
        stop_grace_s: settings.checkpoint_interval_s.map(|_| 0.0),
        consolidated: true,
        lowest_gpu: true,
        ..Capabilities::DEFAULT
    };
    capabilities.grant(ActionKind::Preempt, settings.preemption);
    capabilities.granted = capabilities.granted.intersection(ActionSet::IN_DAEMONS);
    capabilities
}

/// Makes the tables, with nothing kept out of them.
///
/// # Errors
/// Settings that do not fit what was seen.
pub fn build(
    snapshot: &Snapshot,
    memory: &Memory,
    settings: &RoundSettings,
    is_shadow: bool,
) -> Result<Option<Fleet>, Error> {
    let built = build_without(snapshot, memory, settings, is_shadow, &Exclusions::default())?;
    Ok(built.map(|mut fleet| {
        fleet.all_classes();
        fleet
    }))
}

/// Makes the tables without what is kept out of a round, and with the waiting jobs of the highest priority alone: the others come by
/// [`Fleet::next_class`].
///
/// # Errors
/// As [`build`].
pub fn build_without(
    snapshot: &Snapshot,
    memory: &Memory,
    settings: &RoundSettings,
    is_shadow: bool,
    exclusions: &Exclusions,
) -> Result<Option<Fleet>, Error> {
    let stood_in = stand_ins::of_others(snapshot, settings.drive.is_order());
    let snapshot = &*stood_in;
    let (offers, kinds) = offers(snapshot);
    if offers.is_empty() {
        return Ok(None);
    }
    let mut sizes: Vec<Sizes> = kinds.iter().map(|_| Sizes::NONE).collect();
    for offer in &offers {
        sizes[offer.kind].add(offer.num_gpus);
    }
    let masks = masks(snapshot, &kinds, &sizes);
    let classes = classes(&masks, &kinds, settings);
    let spec = spec((&offers, &kinds), &snapshot.site.racks, settings);
    let mut cluster = Cluster::new(&spec, &classes, capabilities(settings))?;
    cluster.advance(Time(snapshot.taken_s.max(0).saturating_mul(1_000_000)));
    take_of_others(&mut cluster, &offers, settings.drive.is_order());
    let mut fleet = Fleet {
        cluster,
        nodes: offers.iter().map(|offer| offer.seen.name.clone()).collect(),
        gpu_types: kinds.iter().map(|kind| named(*kind)).collect(),
        left_out: BTreeMap::new(),
        leases: Vec::new(),
        later: BTreeMap::new(),
    };
    let takes_part = |job: &JobSeen| takes_part(job, snapshot.taken_s, is_shadow);
    let highest = classes::highest(snapshot, &takes_part);
    let mut left = hosts::Left::of(&fleet.cluster);
    let mut runs = placed::placements(snapshot, (&offers, &mut left), memory, &mut fleet.left_out);
    let mut hosts = Hosts::new(snapshot, &offers);
    let allowances: Vec<u64> = snapshot
        .site
        .allowances
        .iter()
        .map(|allowance| allowance.left)
        .collect();
    for (row, job) in snapshot.jobs.iter().enumerate() {
        if !takes_part(job) || fleet.left_out.contains_key(&job.id) {
            continue;
        }
        let why = exclusions.jobs.get(&job.id).cloned();
        if let Some(why) = why.or_else(|| beyond_allowance(job, &allowances, snapshot)) {
            fleet.left_out.insert(job.id, why);
            continue;
        }
        let mask = masks_of(job, &kinds, &sizes);
        let Some(class) = masks.iter().position(|other| *other == mask) else {
            let reason = match never_fits(job, &snapshot.nodes) {
                Some(reason) => format!("it {reason}"),
                None => "no nodes have so many GPUs beside what jobs hold that are left alone".into(),
            };
            fleet.left_out.insert(job.id, reason);
            continue;
        };
        let placement = runs.get(&row).map(|run| run.placement.as_slice());
        let asked = hosts.resources(
            &mut fleet.cluster,
            (job, memory, tasks_of(job)),
            snapshot.taken_s,
            placement,
        );
        let mut record = record(job, (snapshot.taken_s, asked), class, memory, settings);
        record.run = runs.get(&row).map(|run| RunRecord {
            cost_left_s: cost_s(&record, settings),
            ..run.clone()
        });
        let admitted = match (job.terms.is_lease, &record.run) {
            (true, None) => {
                fleet.leases.push(record);
                continue;
            }
            (false, None) if job.terms.priority < highest => {
                fleet.later.entry(job.terms.priority).or_default().push(record);
                continue;
            }
            (true, Some(_)) => fleet.cluster.admit_lease(&record),
            (false, _) => fleet.cluster.admit(&record),
        };
        if let Err(error) = admitted.map(|id| spare(&mut fleet.cluster, id, job)) {
            let why = match closed_to(job, snapshot, Some(memory)) {
                why if why.is_empty() || job.is_placed() => error.to_string(),
                why => format!("no node is open to it: {why}"),
            };
            fleet.left_out.insert(job.id, why);
        } else {
            runs.remove(&row);
        }
    }
    for (row, run) in &runs {
        placed::hold(&mut fleet.cluster, &offers, &snapshot.jobs[*row], run);
    }
    keep_leaving(&mut fleet, snapshot);
    Ok(Some(fleet))
}

/// No pass takes the GPUs of a job that cannot be stopped.
fn spare(cluster: &mut Cluster, id: JobId, job: &JobSeen) {
    if job.terms.stays {
        cluster.spare(id);
    }
}

/// GPUs of jobs that are being stopped are kept from all jobs in the tables.
fn keep_leaving(fleet: &mut Fleet, snapshot: &Snapshot) {
    for (node, name) in (0..).map(NodeId).zip(&fleet.nodes) {
        let num = snapshot.site.leaving.get(name).copied().unwrap_or(0);
        keep(&mut fleet.cluster, node, num);
    }
}

/// What a waiting job takes more of than is left, in words.
fn beyond_allowance(job: &JobSeen, left: &[u64], snapshot: &Snapshot) -> Option<String> {
    let row = job.terms.lacking(left).filter(|_| !job.is_placed())?;
    let Allowance { what, left } = &snapshot.site.allowances[row];
    Some(format!("{left} is left of {what}, and it takes more"))
}

/// Nodes as other jobs leave them: their CPUs and memory, and whether jobs may come. Under `Drive::Order` CPUs and memory of
/// others are not taken off: the order is for emptied nodes, and the batch system counts what others have.
fn take_of_others(cluster: &mut Cluster, offers: &[Offer<'_>], is_order: bool) {
    for (row, offer) in offers.iter().enumerate() {
        let node = NodeId(row as u32);
        if !is_order {
            let Inputs { num_cpus, memory_mib } = offer.of_others;
            cluster.set_aside(node, num_cpus.saturating_mul(1000), memory_mib);
        }
        if offer.state != NodeState::Up {
            cluster.set_node_state(node, offer.state, &mut Vec::new());
        }
    }
}

/// Keeps at most so many free GPUs of a node from all jobs.
pub(crate) fn keep(cluster: &mut Cluster, node: NodeId, num_gpus: u32) {
    let row = &cluster.nodes()[node.index()];
    let gpus = row.lowest_free(num_gpus.min(row.num_free()));
    if gpus != 0 {
        cluster.keep(&[Slice { node, gpus }]);
    }
}

fn takes_part(job: &JobSeen, now_s: i64, is_shadow: bool) -> bool {
    match &job.phase {
        Phase::Running | Phase::Released { .. } => true,
        Phase::Loose => is_shadow,
        Phase::Waiting => now_s >= job.not_before_s,
        Phase::Blocked { .. } | Phase::Foreign { .. } => false,
    }
}

/// The tables of a snapshot's nodes without any job: all GPUs are free, and all nodes are up.
///
/// # Errors
/// As [`build`].
pub fn empty(snapshot: &Snapshot, settings: &RoundSettings) -> Result<Option<Fleet>, Error> {
    build(&emptied(snapshot), &Memory::default(), settings, true)
}

/// Why a job gets no place even where all GPUs of these nodes are free, as what "it" does; none where it may get one, and where no
/// node is of a type that it asks for.
#[must_use]
pub fn never_fits<'a>(job: &JobSeen, nodes: impl IntoIterator<Item = &'a NodeSeen>) -> Option<String> {
    let mut sizes: BTreeMap<&'a str, Sizes> = BTreeMap::new();
    for node in nodes {
        if node.shared.is_some() == job.share.is_some() && names(job, &node.gpu_type) {
            // Most jobs fit the first node that they may have: of thousands that wait none is compared with all nodes.
            if sizes::is_whole_on(node.num_gpus, job) {
                return None;
            }
            sizes
                .entry(&node.gpu_type)
                .or_insert(Sizes::NONE)
                .add(node.num_gpus);
        }
    }
    if sizes.values().any(|sizes| sizes.hold(job)) {
        return None;
    }
    let most = sizes.values().map(Sizes::largest).max()?;
    let (num, each) = (job.num_nodes, job.gpus_per_node);
    let parts = sizes
        .values()
        .map(|sizes| sizes.num_parts(job))
        .max()
        .unwrap_or(0);
    Some(match (num, job.is_packed) {
        (1, _) => format!("asks for {each} GPUs on one node, and the largest that it may have has {most}"),
        (_, true) if each > most => {
            format!("has pods of {each} GPUs, and the largest node that they may have has {most}")
        }
        (_, true) => format!("has {num} pods of {each} GPUs, and the nodes that they may have hold {parts}"),
        _ => {
            format!("asks for {each} GPUs on each of {num} nodes, and {parts} that it may have have so many")
        }
    })
}

fn record(
    job: &JobSeen,
    (now_s, resources): (i64, Resources),
    class: usize,
    memory: &Memory,
    settings: &RoundSettings,
) -> JobRecord {
    let tenant = settings.tenants.keys().position(|name| *name == job.account);
    let past = memory.past(job.id);
    let submit_s = job.submit_s.clamp(0, now_s.max(0));
    // A clock that was set back must not make a job run before it came.
    let start_us = job
        .start_s
        .map(|start_s| start_s.clamp(0, now_s.max(0)) * 1_000_000);
    let first_start_us = past
        .first_start_us
        .or(start_us)
        .map(|first| first.clamp(0, start_us.unwrap_or(now_s.max(0) * 1_000_000)));
    JobRecord {
        attained_gpu_s: past.received.attained_gpu_s,
        held_s: past.received.held_s,
        executed_s: past.received.executed_s,
        added_s: past.received.added_s,
        saved_s: past.received.saved_s,
        num_preemptions: past.received.num_preemptions,
        num_failures: past.received.num_failures,
        first_start: first_start_us.map(Time),
        ..JobRecord::new(
            job.id,
            Time(submit_s * 1_000_000),
            Submission {
                tenant: TenantId(tenant.unwrap_or(settings.tenants.len()) as u16),
                class: ClassId(class as u16),
                num_gpus: job.num_gpus(),
                estimate_s: job.estimate_s(settings.default_limit_s),
                resources,
            },
        )
    }
}

/// What the present run of a job had to pay when it began, s.
fn cost_s(record: &JobRecord, settings: &RoundSettings) -> f64 {
    if record.num_preemptions + record.num_failures > 0 {
        settings.restart_cost_s
    } else {
        0.0
    }
}
