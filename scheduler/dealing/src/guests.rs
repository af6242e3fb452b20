//! A job that got no GPUs joins a gang of its size that did, where the two together are believed to do enough more than one
//! alone.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, NodeState, Placement, ShapeId, Sharing};
use pleach_scheduler::{GpuTypeId, JobId};

use super::count::{Room, Wish};
use super::rules::DealingRules;
use crate::allocation::{Allocation, Grant};
use crate::pair_speeds::PairSpeeds;

/// A job that has GPUs to itself.
struct Host {
    job: JobId,
    kind: GpuTypeId,
    placement: Placement,
}

/// Adds guests to an allocation, best score first; each takes the host with which the two do most, or stays with its own.
pub(super) fn add_guests(
    cluster: &Cluster,
    rules: &DealingRules,
    speeds: &mut PairSpeeds,
    wishes: &[Wish],
    room: &mut Room,
    allocation: &mut Allocation,
) {
    if !rules.share || cluster.capabilities().sharing == Sharing::Off {
        return;
    }
    let mut hosts = hosts(cluster, allocation);
    let mut is_asked = vec![false; cluster.jobs().len()];
    for wish in wishes {
        let job = cluster.job(wish.job);
        if std::mem::replace(&mut is_asked[wish.job.index()], true)
            || allocation.contains_key(&wish.job)
            || job.shape != ShapeId::PLAIN
        {
            continue;
        }
        let Some(of_size) = hosts.get_mut(&job.request.num_gpus) else {
            continue;
        };
        let Some(at) = best_host(cluster, rules, speeds, wish.job, of_size) else {
            continue;
        };
        if room.take_quota(cluster, wish.job, job.request.num_gpus) {
            let host = of_size.remove(at);
            allocation.insert(wish.job, Grant::gang(host.placement));
        }
    }
}

/// Those with GPUs to themselves on open nodes and without CPU or memory of their own, by size of the gang and by job.
fn hosts(cluster: &Cluster, allocation: &Allocation) -> BTreeMap<u32, Vec<Host>> {
    let mut num_on: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    let first = |grant: &Grant| {
        grant
            .placement
            .first()
            .map_or((0, 0), |slice| (slice.node.0, slice.gpus))
    };
    for grant in allocation.values() {
        *num_on.entry(first(grant)).or_default() += 1;
    }
    let mut hosts: BTreeMap<u32, Vec<Host>> = BTreeMap::new();
    for (id, grant) in allocation {
        let job = cluster.job(*id);
        let mut nodes = grant
            .placement
            .iter()
            .map(|slice| &cluster.nodes()[slice.node.index()]);
        let is_open = nodes.clone().all(|node| node.state == NodeState::Up);
        let granted = grant.granted.unwrap_or(job.shape);
        let num_gpus: u32 = grant.placement.iter().map(|slice| slice.num_gpus()).sum();
        if let Some(node) = nodes.next()
            && is_open
            && granted == ShapeId::PLAIN
            && !job.is_forked
            && num_on[&first(grant)] == 1
        {
            hosts.entry(num_gpus).or_default().push(Host {
                job: *id,
                kind: node.gpu_type,
                placement: grant.placement.clone(),
            });
        }
    }
    hosts
}

/// The host with which a guest does best, if that pays with any.
fn best_host(
    cluster: &Cluster,
    rules: &DealingRules,
    speeds: &mut PairSpeeds,
    guest: JobId,
    hosts: &[Host],
) -> Option<usize> {
    let job = cluster.job(guest);
    let mut best: Option<(f64, usize)> = None;
    for (at, host) in hosts.iter().enumerate() {
        if job.types >> host.kind.0 & 1 == 0 {
            continue;
        }
        let together =
            speeds.of(cluster, guest, host.job, host.kind) + speeds.of(cluster, host.job, guest, host.kind);
        let stays = job.state == JobState::Running && job.placement == host.placement;
        let better = stays || best.is_none_or(|(most, _)| together > most);
        if together <= rules.pack_above || !better || !cluster.can_live_beside(guest, host.job, host.kind) {
            continue;
        }
        best = Some((together, at));
        if stays {
            break;
        }
    }
    best.map(|(_, at)| at)
}
