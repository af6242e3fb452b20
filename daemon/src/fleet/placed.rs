//! On which GPUs of the tables jobs run: as the batch system told, as was decided, else as it is known to choose.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Placement, Slice};
use pleach_scheduler::snapshot::RunRecord;
use pleach_scheduler::{ExternalId, NodeId, Time};

use super::hosts::Left;
use super::offer::Offer;
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

    /// So many whole GPUs: those that are the job's own, else the lowest. None: there are too few.
    fn whole(&self, own: u64, num_gpus: u32) -> Option<u64> {
        let free = self.with(1000);
        if free.count_ones() < num_gpus {
            return None;
        }
        let mut rest = free;
        for _ in 0..num_gpus {
            rest &= rest - 1;
        }
        let is_his = own & !free == 0 && own.count_ones() == num_gpus;
        Some(if is_his { own } else { free & !rest })
    }

    /// A part of a GPU: the job's own, else the lowest that has room. None: no GPU has.
    fn part(&self, own: u64, milli: u16) -> Option<u64> {
        let open = self.with(milli);
        let is_his = own & !open == 0 && own.count_ones() == 1;
        let lowest = open & open.wrapping_neg();
        (open != 0).then_some(if is_his { own } else { lowest })
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
/// them. By row of the snapshot.
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
    let since = |job: &JobSeen| match job.phase {
        Phase::Released { since_s } => since_s,
        _ => job.start_s.unwrap_or(snapshot.taken_s),
    };
    let placed = snapshot
        .jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| job.is_placed());
    let mut placed: Vec<_> = placed
        .map(|(row, job)| (job.phase != Phase::Running, since(job), row, job))
        .collect();
    placed.sort_by_key(|(is_released, since_s, row, _)| (*is_released, *since_s, *row));
    let mut runs = BTreeMap::new();
    for (number, (_, since_s, row, job)) in placed.into_iter().enumerate() {
        let mut placement = Placement::new();
        let past = memory.past(job.id);
        let shares = shares(job);
        for (name, num_gpus) in &shares {
            let Some(node) = rows.get(name).copied() else {
                break;
            };
            let own = past.gpus.get(*name).copied().unwrap_or(0);
            let gpus = match job.share {
                None => free[node].whole(own, *num_gpus),
                Some(share) => {
                    let told = share.gpu.and_then(|index| offers[node].row_of(index));
                    free[node].part(told.map_or(own, |row| 1 << row), share.gpu_milli)
                }
            };
            let Some(gpus) = gpus else { break };
            placement.push(Slice {
                node: NodeId(node as u32),
                gpus,
            });
        }
        if placement.len() != shares.len() || placement.is_empty() {
            left_out.insert(
                job.id,
                format!(
                    "its nodes ({}) are not there or have no GPUs for it",
                    job.nodes.join(",")
                ),
            );
            continue;
        }
        for slice in &placement {
            free[slice.node.index()].take(slice.gpus, job.gpu_milli());
        }
        let (cpu_milli_per_gpu, memory_mib_per_gpu) = left.take(job, &placement);
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
