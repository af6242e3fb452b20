//! From who has a turn to which GPUs, and from there to the cluster.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState, Placement, Slice};
use pleach_scheduler::ids::{GpuTypeId, JobId, NodeId};

use super::mechanism::{Party, Turn};

/// The exact GPUs of every turn: larger gangs first; among gangs of one size those that had a turn on the type in the last
/// round (`last`) keep their GPUs where nobody has taken them, and the others take the first free GPUs, node by node.
///
/// # Panics
/// If the turns want more GPUs than there are.
#[must_use]
pub fn place(
    cluster: &Cluster,
    turns: &[Turn],
    last: &BTreeMap<Party, Placement>,
) -> BTreeMap<Party, Placement> {
    let nodes = cluster.nodes();
    let mut free: Vec<u64> = nodes
        .iter()
        .map(|node| u64::MAX >> (64 - node.num_gpus))
        .collect();
    let size = |turn: &Turn| cluster.job(turn.party.job).request.num_gpus;
    let mut order: Vec<Turn> = turns.to_vec();
    order.sort_by_key(|turn| std::cmp::Reverse(size(turn)));
    let mut placed = BTreeMap::new();
    for gangs in order.chunk_by(|a, b| size(a) == size(b)) {
        let mut moved = Vec::new();
        for turn in gangs {
            let kept = last.get(&turn.party).filter(|placement| {
                let has_type = |slice: &Slice| nodes[slice.node.index()].gpu_type == turn.gpu_type;
                let is_free = |slice: &Slice| slice.gpus & !free[slice.node.index()] == 0;
                placement.iter().all(|slice| has_type(slice) && is_free(slice))
            });
            if let Some(placement) = kept {
                for slice in placement {
                    free[slice.node.index()] &= !slice.gpus;
                }
                placed.insert(turn.party, placement.clone());
            } else {
                moved.push(*turn);
            }
        }
        for turn in moved {
            let (mut left, mut placement) = (size(&turn), Placement::new());
            for (index, node) in nodes.iter().enumerate() {
                if node.gpu_type != turn.gpu_type || free[index] == 0 || left == 0 {
                    continue;
                }
                let gpus = lowest(free[index], left);
                free[index] &= !gpus;
                left -= gpus.count_ones();
                let node = NodeId(index as u32);
                placement.push(Slice { node, gpus });
            }
            assert_eq!(left, 0, "{:?} was dealt GPUs that are not there", turn.party);
            placed.insert(turn.party, placement);
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

/// Carries out a dealing: stops the jobs that lost their GPUs or move, renews the leases of those that keep them, starts
/// the others.
pub fn lease(cluster: &mut Cluster, placed: &BTreeMap<Party, Placement>) {
    let places = || {
        placed
            .iter()
            .flat_map(|(party, placement)| party.jobs().map(move |job| (job, placement)))
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
