//! From leases to their GPUs, and from there to the cluster.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, Placement, Slice};
use pleach_scheduler::{GpuTypeId, JobId, NodeId};

use super::mechanism::{JobCombination, Lease};

/// The exact GPUs of every lease: larger gangs first; among gangs of one size those that had a lease on the type in the last
/// round (`last`) keep their GPUs where these are not taken, and the others take the first free GPUs, node by node.
///
/// # Panics
/// If the leases want more GPUs than there are.
#[must_use]
pub fn place(
    cluster: &Cluster,
    leases: &[Lease],
    last: &BTreeMap<JobCombination, Placement>,
) -> BTreeMap<JobCombination, Placement> {
    let nodes = cluster.nodes();
    let mut free: Vec<u64> = nodes
        .iter()
        .map(|node| u64::MAX >> (64 - node.num_gpus))
        .collect();
    let size = |lease: &Lease| cluster.job(lease.combination.job).request.num_gpus;
    let mut order: Vec<Lease> = leases.to_vec();
    order.sort_by_key(|lease| std::cmp::Reverse(size(lease)));
    let mut placed = BTreeMap::new();
    for gangs in order.chunk_by(|a, b| size(a) == size(b)) {
        let mut moved = Vec::new();
        for lease in gangs {
            let kept = last.get(&lease.combination).filter(|placement| {
                let has_type = |slice: &Slice| nodes[slice.node.index()].gpu_type == lease.gpu_type;
                let is_free = |slice: &Slice| slice.gpus & !free[slice.node.index()] == 0;
                placement.iter().all(|slice| has_type(slice) && is_free(slice))
            });
            if let Some(placement) = kept {
                for slice in placement {
                    free[slice.node.index()] &= !slice.gpus;
                }
                placed.insert(lease.combination, placement.clone());
            } else {
                moved.push(*lease);
            }
        }
        for lease in moved {
            let (mut left, mut placement) = (size(&lease), Placement::new());
            for (index, node) in nodes.iter().enumerate() {
                if node.gpu_type != lease.gpu_type || free[index] == 0 || left == 0 {
                    continue;
                }
                let gpus = lowest(free[index], left);
                free[index] &= !gpus;
                left -= gpus.count_ones();
                let node = NodeId(index as u32);
                placement.push(Slice { node, gpus });
            }
            assert_eq!(
                left, 0,
                "{:?} was allocated GPUs that are not there",
                lease.combination
            );
            placed.insert(lease.combination, placement);
        }
    }
    placed
}

/// The lowest `num` set bits of a mask, or all of them.
fn lowest(mask: u64, num: u32) -> u64 {
    let mut rest = mask;
    for _ in 0..num {
        rest &= rest.wrapping_sub(1);
    }
    mask & !rest
}

/// Carries out an allocation: stops the jobs that lost their GPUs or move, renews the leases of those that keep them, starts
/// the others.
pub fn apply_leases(cluster: &mut Cluster, placed: &BTreeMap<JobCombination, Placement>) {
    let places = || {
        placed
            .iter()
            .flat_map(|(combination, placement)| combination.jobs().map(move |job| (job, placement)))
    };
    let keeps: BTreeMap<JobId, &Placement> = places().collect();
    let mut stopped: Vec<JobId> = Vec::new();
    for kind in 0..cluster.num_types() {
        let running = cluster.running_of(GpuTypeId(kind as u8)).iter();
        let lost = running.filter(|(_, job)| keeps.get(job).copied() != Some(&cluster.job(*job).placement));
        stopped.extend(lost.map(|(_, job)| *job));
    }
    stopped.sort_unstable();
    for job in stopped {
        cluster.preempt(job);
    }
    for (job, placement) in places() {
        if cluster.job(job).state == JobState::Pending {
            cluster.start(job, placement.clone());
        }
    }
}
