//! The cluster of the tables and of lists, with the GPU types that jobs may have as classes.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::cluster_spec::{GpuTypeSpec, NodeGroup, TenantSpec};
use pleach_scheduler::{ClusterSpec, ModelClass};

use super::hosts;
use super::offer::{Kind, Offer, named, offers};
use super::sizes::Sizes;
use crate::config::RoundSettings;
use crate::snapshot::{JobSeen, Phase, SharedNode, Site, Snapshot};

/// The class of jobs that run on any GPU type, in lists.
pub(crate) const ANY: &str = "any";

/// The whole cluster of a snapshot as a simulator would have it, without what jobs hold; the classes of some jobs by the GPU types that
/// they ask for, any first; which of them each job is of, none where no type has so many GPUs.
pub(crate) fn whole(
    snapshot: &Snapshot,
    jobs: &[&JobSeen],
    settings: &RoundSettings,
) -> (ClusterSpec, Vec<ModelClass>, Vec<Option<usize>>) {
    let empty = emptied(snapshot);
    let (offers, kinds) = offers(&empty);
    let mut num_gpus = vec![0; kinds.len()];
    offers
        .iter()
        .for_each(|offer| num_gpus[offer.kind] += offer.num_gpus);
    let hold = |job: &JobSeen, mask: u64| {
        mask_of(&kinds, |at, _| {
            mask >> at & 1 == 1 && num_gpus[at] >= job.num_gpus()
        }) != 0
    };
    // Where it would find no place by its own word the word is not taken.
    let of_jobs = jobs.iter().map(|job| {
        let mask = mask_of(&kinds, |_, kind| may_be(job, kind));
        let masks = [mask, u64::MAX];
        masks.into_iter().find(|mask| hold(job, *mask))
    });
    let of_jobs: Vec<Option<u64>> = of_jobs.collect();
    let masks = distinct(of_jobs.iter().flatten().copied(), &kinds);
    let classes = classes(&masks, &kinds, settings).into_iter().enumerate();
    let classes = classes.map(|(number, class)| ModelClass {
        name: if number == 0 { ANY.into() } else { class.name },
        speed: class.speed,
        ..ModelClass::default()
    });
    let number = |mask: u64| masks.iter().position(|other| *other == mask).unwrap_or(0);
    (
        spec((&offers, &kinds), &empty.site.racks, settings),
        classes.collect(),
        of_jobs.into_iter().map(|mask| mask.map(number)).collect(),
    )
}

/// Names of the nodes of [`whole`], in its order.
pub(crate) fn whole_nodes(snapshot: &Snapshot) -> Vec<String> {
    let empty = emptied(snapshot);
    offers(&empty)
        .0
        .iter()
        .map(|offer| offer.seen.name.clone())
        .collect()
}

/// Whether a job may run on a type of the tables: shares and whole GPUs are apart.
fn may_be(job: &JobSeen, (kind, is_shared): Kind<'_>) -> bool {
    is_shared == job.share.is_some() && names(job, kind)
}

/// Some GPU types as a mask.
fn mask_of(kinds: &[Kind<'_>], is_one: impl Fn(usize, Kind<'_>) -> bool) -> u64 {
    let bits = kinds.iter().take(64).enumerate();
    bits.fold(0, |mask, (at, kind)| mask | u64::from(is_one(at, *kind)) << at)
}

/// The GPU types of which the nodes hold a job, as a mask; 0: none, now.
pub(super) fn masks_of(job: &JobSeen, kinds: &[Kind<'_>], sizes: &[Sizes]) -> u64 {
    mask_of(kinds, |at, kind| {
        may_be(job, kind) && (job.is_placed() || sizes[at].hold(job))
    })
}

/// The different masks of a snapshot's jobs, as [`distinct`].
pub(super) fn masks(snapshot: &Snapshot, kinds: &[Kind<'_>], sizes: &[Sizes]) -> Vec<u64> {
    let jobs = snapshot.jobs.iter();
    let jobs = jobs.filter(|job| !matches!(job.phase, Phase::Foreign { .. }));
    distinct(jobs.map(|job| masks_of(job, kinds, sizes)), kinds)
}

/// The different masks of jobs, all types first: one model class for each. Where GPUs are given in shares, those of shares and of whole
/// GPUs are always among them: what policies read of a job must not depend on the other jobs that wait.
fn distinct(of_jobs: impl Iterator<Item = u64>, kinds: &[Kind<'_>]) -> Vec<u64> {
    let all = u64::MAX >> (64 - kinds.len().clamp(1, 64));
    let shared = mask_of(kinds, |_, (_, is_shared)| is_shared);
    let mut masks: Vec<u64> = of_jobs.collect();
    if shared != 0 {
        masks.extend([shared, all & !shared]);
    }
    masks.retain(|mask| *mask != 0 && *mask & all != all);
    masks.sort_unstable();
    masks.dedup();
    masks.insert(0, all);
    masks
}

pub(super) fn classes(masks: &[u64], kinds: &[Kind<'_>], settings: &RoundSettings) -> Vec<ModelClass> {
    let speed = |kind: &str| settings.gpu_types.get(kind).map_or(1.0, |gpu| gpu.speed);
    let class = |mask: &u64| ModelClass {
        name: format!("types-{mask:x}"),
        checkpoint_interval_s: settings.checkpoint_interval_s,
        speed: kinds
            .iter()
            .enumerate()
            .map(|(at, (kind, _))| if mask >> at & 1 == 1 { speed(kind) } else { 0.0 })
            .collect(),
        ..ModelClass::default()
    };
    masks.iter().map(class).collect()
}

pub(super) fn emptied(snapshot: &Snapshot) -> Snapshot {
    let mut nodes = snapshot.nodes.clone();
    for node in &mut nodes {
        (node.num_gpus_used, node.state, node.host) = (0, NodeState::Up, None);
        node.shared = node.shared.map(|_| SharedNode::default());
    }
    Snapshot {
        nodes,
        jobs: Vec::new(),
        site: Site {
            racks: snapshot.site.racks.clone(),
            ..Site::default()
        },
        ..*snapshot
    }
}

/// Whether a job may run on a GPU type by its own word.
pub(super) fn names(job: &JobSeen, kind: &str) -> bool {
    job.gpu_type.as_deref().is_none_or(|asked| asked == kind)
        && (job.gpu_types.is_empty() || job.gpu_types.iter().any(|asked| asked == kind))
}

pub(super) fn spec(
    (offers, kinds): (&[Offer<'_>], &[Kind<'_>]),
    racks: &BTreeMap<String, String>,
    settings: &RoundSettings,
) -> ClusterSpec {
    let mut node_groups: Vec<NodeGroup> = Vec::new();
    // A rack spans no two groups.
    let mut rack: Option<&String> = None;
    for offer in offers {
        let gpu_type = named(kinds[offer.kind]);
        let (cpu_cores, memory_gib) = hosts::capacity(offer.seen, offer.num_gpus);
        let is_alike = |last: &NodeGroup| {
            last.gpu_type == gpu_type
                && last.gpus_per_node == offer.num_gpus
                && (last.cpu_cores, last.memory_gib) == (cpu_cores, memory_gib)
        };
        let last_rack = std::mem::replace(&mut rack, racks.get(&offer.seen.name));
        match node_groups.last_mut() {
            Some(last) if is_alike(last) && rack == last_rack => last.count += 1,
            _ => node_groups.push(NodeGroup {
                count: 1,
                cpu_cores,
                memory_gib,
                gpus_per_node: offer.num_gpus,
                gpu_type,
                nodes_per_rack: settings.nodes_per_rack,
                ..NodeGroup::default()
            }),
        }
    }
    let capacity: u32 = offers.iter().map(|offer| offer.num_gpus).sum();
    let owned: u32 = settings
        .tenants
        .values()
        .fold(0, |sum, quota| sum.saturating_add(*quota));
    // Where others hold a part of the cluster, each quota shrinks alike.
    let quota = |gpus: u32| (u64::from(gpus) * u64::from(capacity) / u64::from(owned.max(capacity))) as u32;
    let mut tenants: Vec<TenantSpec> = settings
        .tenants
        .iter()
        .map(|(name, gpus)| TenantSpec {
            name: name.clone(),
            quota_gpus: quota(*gpus),
        })
        .collect();
    tenants.push(TenantSpec {
        name: "*".into(),
        quota_gpus: capacity - tenants.iter().map(|tenant| tenant.quota_gpus).sum::<u32>(),
    });
    ClusterSpec {
        gpu_types: kinds
            .iter()
            .map(|kind| GpuTypeSpec {
                name: named(*kind),
                memory_gib: settings.gpu_types.get(kind.0).map_or(32.0, |gpu| gpu.memory_gib),
                mig: None,
            })
            .collect(),
        node_groups,
        tenants,
        ..ClusterSpec::default()
    }
}
