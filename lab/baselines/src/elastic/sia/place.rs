//! From configurations to GPUs (SOSP'23, section 3.5): what is a part of a node never crosses nodes, whole nodes are taken
//! whole. Jobs with the same configuration as before stay; where the others then do not fit, more and more jobs are moved.
//!
//! Parts that are powers of two, placed largest first, always fit where a node's size is one too; on other nodes, or where
//! CPU and memory bind, a job may get fewer GPUs or wait for the next round.

use pleach_scheduler::cluster::{Cluster, Placement};
use pleach_scheduler::{GpuTypeId, NodeId};

use super::super::field::Field;
use super::super::scaling::Scaling;

/// Which jobs stay where they are if their configuration is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// All of them; the others get what is left.
    First,
    /// Those that still can when their turn comes, largest first.
    InTurn,
    /// None.
    Nobody,
}

/// Places what each job was given; the first attempt in which all fit, else that which places most GPUs.
pub(super) fn place(cluster: &Cluster, field: &mut Field, wants: &[(&Scaling, GpuTypeId, u32)]) {
    let mut best: Option<(u32, Field)> = None;
    let wanted: u32 = wants.iter().map(|(_, _, num_gpus)| num_gpus).sum();
    for stay in [Stay::First, Stay::InTurn, Stay::Nobody] {
        let mut attempt = field.clone();
        let placed = attempt_to_place(cluster, &mut attempt, wants, stay);
        if best.as_ref().is_none_or(|(most, _)| placed > *most) {
            best = Some((placed, attempt));
        }
        if placed == wanted {
            break;
        }
    }
    if let Some((_, attempt)) = best {
        *field = attempt;
    }
}

/// Places in one way; the number of GPUs that were placed.
fn attempt_to_place(
    cluster: &Cluster,
    field: &mut Field,
    wants: &[(&Scaling, GpuTypeId, u32)],
    stay: Stay,
) -> u32 {
    let is_same = |job: &Scaling, kind: GpuTypeId, num_gpus: u32| job.held == Some((kind, num_gpus));
    let mut rest: Vec<(&Scaling, GpuTypeId, u32)> = Vec::new();
    let mut placed = 0;
    for (job, kind, num_gpus) in wants {
        if stay == Stay::First && is_same(job, *kind, *num_gpus) && field.keep(cluster, job) {
            placed += num_gpus;
        } else {
            rest.push((*job, *kind, *num_gpus));
        }
    }
    rest.sort_by_key(|(_, _, num_gpus)| std::cmp::Reverse(*num_gpus));
    for (job, kind, wanted) in rest {
        if stay != Stay::Nobody && is_same(job, kind, wanted) && field.keep(cluster, job) {
            placed += wanted;
            continue;
        }
        let mut num_gpus = wanted.min(field.quota_left(job.tenant));
        while num_gpus >= job.least {
            let gpus = find(cluster, field, job, kind, num_gpus);
            if gpus.is_some_and(|gpus| field.give(cluster, job, gpus)) {
                placed += num_gpus;
                break;
            }
            num_gpus = if job.is_rigid() { 0 } else { num_gpus / 2 };
        }
    }
    placed
}

/// A part of one node, or whole nodes. A gang that is neither, and one that no node could serve by its CPU and memory, is
/// placed as tightly as it goes.
fn find(
    cluster: &Cluster,
    field: &Field,
    job: &Scaling,
    kind: GpuTypeId,
    num_gpus: u32,
) -> Option<Placement> {
    let node_gpus = cluster.node_gpus_max_of(kind);
    let tightest = || field.free.tightest(kind, num_gpus, job.shape);
    if num_gpus <= node_gpus {
        return tightest().filter(|placement| placement.len() == 1 || job.is_rigid());
    }
    if !num_gpus.is_multiple_of(node_gpus) {
        return tightest();
    }
    let nodes = (0..field.free.nodes().len()).map(|node| NodeId(node as u32));
    let whole = nodes.filter(|node| {
        let is_of_type = field.free.nodes()[node.index()].gpu_type == kind;
        is_of_type && field.free.hosts(*node, job.shape) == node_gpus
    });
    let slices = whole.map(|node| field.free.lowest(node, node_gpus));
    let slices: Placement = slices.take((num_gpus / node_gpus) as usize).collect();
    if slices.len() as u32 == num_gpus / node_gpus {
        Some(slices)
    } else if job.is_rigid() {
        tightest()
    } else {
        None
    }
}
