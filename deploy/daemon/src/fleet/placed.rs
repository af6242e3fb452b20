//! On which GPUs of the tables jobs run: as the batch system reports, as was decided, else as it is known to choose.
//!
//! A node may be gone, or offer fewer GPUs than are held on it: one broke, a device plugin began anew. What a job holds on the
//! others stays held, and a node that offers fewer than are held there is full.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{NodeState, Placement, Slice};
use pleach_scheduler::record::RunRecord;
use pleach_scheduler::{Cluster, ExternalId, NodeId, Time};

use super::hosts::Left;
use super::offer::{Inputs, Offer};
use crate::memory::Memory;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// What is left of the GPUs of a node, in thousandths. `[num_gpus]`
struct Free(Vec<u16>);

impl Free {
    fn of(offer: &Offer<'_>) -> Free {
        Free(vec![1000; offer.num_gpus as usize])
    }

    /// GPUs with so much left, as a bit mask.
    fn with(&self, milli: u16) -> u64 {
        let open = self.0.iter().enumerate().filter(|(_, left)| **left >= milli);
        open.fold(0, |mask, (row, _)| mask | 1 << row)
    }

    /// So many whole GPUs: those that are the job's own, else the lowest. Fewer where there are too few.
    fn whole(&self, own: u64, num_gpus: u32) -> u64 {
        let free = self.with(1000);
        let mut rest = free;
        for _ in 0..num_gpus.min(free.count_ones()) {
            rest &= rest - 1;
        }
        let is_own = own & !free == 0 && own.count_ones() == num_gpus;
        if is_own { own } else { free & !rest }
    }

    /// A part of a GPU: the job's own, else the lowest that has room. 0: no GPU has.
    fn part(&self, own: u64, milli: u16) -> u64 {
        let open = self.with(milli);
        let is_own = own & !open == 0 && own.count_ones() == 1;
        if is_own { own } else { open & open.wrapping_neg() }
    }

    fn take(&mut self, gpus: u64, milli: u16) {
        for (row, left) in self.0.iter_mut().enumerate() {
            if gpus >> row & 1 == 1 {
                *left = left.saturating_sub(milli);
            }
        }
    }
}

/// GPUs of the jobs that have some: those that were decided, else the lowest that are left, in the order in which they came to
/// them. By row of the snapshot. A job with fewer than it holds stands in `left_out`.
pub(super) fn placements(
    snapshot: &Snapshot,
    (offers, left): (&[Offer<'_>], &mut Left),
    memory: &Memory,
    left_out: &mut BTreeMap<ExternalId, String>,
) -> BTreeMap<usize, RunRecord> {
    let rows: BTreeMap<&str, usize> = offers
        .iter()
        .enumerate()
        .map(|(row, offer)| (offer.seen.name.as_str(), row))
        .collect();
    let mut free: Vec<Free> = offers.iter().map(Free::of).collect();
    let mut runs = BTreeMap::new();
    for (number, (since_s, row, job)) in in_order(snapshot).into_iter().enumerate() {
        let mut placement = Placement::new();
        let past = memory.past(job.id);
        let mut num_short = 0;
        for (name, num_gpus) in shares(job) {
            let Some(node) = rows.get(name).copied() else {
                num_short += num_gpus;
                continue;
            };
            let own = past.gpus.get(name).copied().unwrap_or(0);
            let gpus = match job.share {
                None => free[node].whole(own, num_gpus),
                Some(share) => {
                    let told = share.gpu.and_then(|index| offers[node].row_of(index));
                    free[node].part(told.map_or(own, |row| 1 << row), share.gpu_milli)
                }
            };
            free[node].take(gpus, job.gpu_milli());
            num_short += num_gpus.saturating_sub(gpus.count_ones());
            // A slice of no GPUs names the node all the same.
            placement.push(Slice {
                node: NodeId(node as u32),
                gpus,
            });
        }
        let (mut cpu_milli_per_gpu, mut memory_mib_per_gpu) = (0, 0);
        if num_short > 0 || placement.is_empty() {
            let nodes = job.nodes.join(",");
            let why = format!("its nodes ({nodes}) have {num_short} GPUs less than it holds");
            left_out.insert(job.id, why);
        } else {
            (cpu_milli_per_gpu, memory_mib_per_gpu) = left.take(job, &placement);
        }
        let start = Time(
            since_s
                .clamp(0, snapshot.taken_s.max(0))
                .saturating_mul(1_000_000),
        );
        runs.insert(
            row,
            RunRecord {
                placement,
                start,
                start_number: number as u64,
                cpu_milli_per_gpu,
                memory_mib_per_gpu,
                is_forked: false,
                rate_alone: None,
                rate_since: start,
                cost_left_s: 0.0,
                instances: Vec::new(),
            },
        );
    }
    runs
}

/// Placed jobs in the order in which they came to their GPUs, those that run first: since when, row of the snapshot, job.
fn in_order(snapshot: &Snapshot) -> Vec<(i64, usize, &JobSeen)> {
    let since = |job: &JobSeen| match job.phase {
        Phase::Released { since_s } => since_s,
        _ => job.start_s.unwrap_or(snapshot.taken_s),
    };
    let jobs = snapshot.jobs.iter().enumerate();
    let placed = jobs.filter(|(_, job)| job.is_placed());
    let mut placed: Vec<_> = placed.map(|(row, job)| (since(job), row, job)).collect();
    placed.sort_by_key(|(since_s, row, job)| (job.phase != Phase::Running, *since_s, *row));
    placed
}

/// Keeps from all others what a placed job holds that is not in the tables: its GPUs, CPUs and host memory on each of its nodes.
/// Where GPUs are given in shares the node takes no more jobs, for its other residents may be on the same GPU.
pub(super) fn hold(cluster: &mut Cluster, offers: &[Offer<'_>], job: &JobSeen, run: &RunRecord) {
    for slice in &run.placement {
        let row = slice.node.index();
        let parts = job.nodes.iter().filter(|name| **name == offers[row].seen.name);
        let (parts, inputs) = (parts.count() as u32, Inputs::of(job));
        let cpu_milli = inputs.num_cpus.saturating_mul(1000).saturating_mul(parts);
        cluster.set_aside(slice.node, cpu_milli, inputs.memory_mib.saturating_mul(parts));
        let gpus = slice.gpus & cluster.nodes()[row].free;
        if offers[row].seen.shared.is_some() {
            cluster.set_node_state(slice.node, NodeState::Draining, &mut Vec::new());
        } else if gpus != 0 {
            cluster.keep(&[Slice { gpus, ..*slice }]);
        }
    }
}

/// The nodes of a placed job in their order, and its GPUs on each.
fn shares(job: &JobSeen) -> Vec<(&str, u32)> {
    let mut shares: Vec<(&str, u32)> = Vec::new();
    for name in &job.nodes {
        match shares.iter_mut().find(|(other, _)| other == name) {
            Some((_, num_gpus)) => *num_gpus = num_gpus.saturating_add(job.gpus_per_node),
            None => shares.push((name, job.gpus_per_node)),
        }
    }
    shares
}
