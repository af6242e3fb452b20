//! Shares of GPUs (`--gres=shard:K`) on the nodes that are set apart for them.
//!
//! Of a node Slurm takes the GPU with the lowest index that has room. Where a share runs is read from `scontrol -d show job`, for
//! `sinfo` does not tell: of a shared GPU Slurm 22.05 forgets that it is in use as soon as the first of its jobs ends, and then gives
//! it away as a whole besides. That is why nodes are set apart in the tables; a site keeps whole-GPU jobs off them by a partition.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::{ExternalId, Problem};

use crate::error::Error;
use crate::snapshot::{JobSeen, NodeSeen, Phase, SharedNode};
use pleach_site::slurm::expand;

/// Most shards that a GPU may have.
pub const SHARDS_MAX: u32 = 1000;

/// What a request says, `shard:3` or `shard:a100:3` behind `gres:`: GPU type and shards. None: it is for something else.
pub(super) fn asked(text: &str) -> Option<(Option<String>, u32)> {
    let parts: Vec<&str> = text.split(':').collect();
    let (kind, count) = match parts.as_slice() {
        ["shard"] => (None, "1"),
        ["shard", last] if last.bytes().all(|byte| byte.is_ascii_digit()) => (None, *last),
        ["shard", kind] => (Some(*kind), "1"),
        ["shard", kind, count] => (Some(*kind), *count),
        _ => return None,
    };
    let count = count
        .parse()
        .ok()
        .filter(|count| (1..=SHARDS_MAX).contains(count))?;
    Some((kind.map(str::to_owned), count))
}

/// A share in thousandths of a GPU. As many shares as Slurm lets on a GPU fit into a thousand for GPUs of up to 31 shards; of
/// finer ones each is rounded up, so a few of the smallest may be too many.
#[must_use]
pub fn gpu_milli(shards: u32, shards_per_gpu: u32) -> u16 {
    let per_gpu = u64::from(shards_per_gpu.max(1));
    let milli = 1000 * u64::from(shards);
    let milli = if per_gpu <= 31 {
        milli / per_gpu
    } else {
        milli.div_ceil(per_gpu)
    };
    milli.clamp(1, 1000) as u16
}

/// GPUs of a node, as a bit mask.
type Mask = u64;

/// On which GPUs of which nodes jobs run, as `scontrol -o -d show job` tells.
///
/// The text of a job holds words of its user, who can so lie about his own job: callers take only the nodes on which `squeue`
/// shows the job.
pub(super) fn held_gpus(text: &str) -> BTreeMap<ExternalId, BTreeMap<String, Mask>> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let value = |key: &str| {
            let at = line.find(key)? + key.len();
            line[at..].split_ascii_whitespace().next()
        };
        let number = match (value(" ArrayJobId="), value(" ArrayTaskId=")) {
            (Some(array), Some(task)) => format!("{array}_{task}"),
            _ => line
                .strip_prefix("JobId=")
                .and_then(|rest| rest.split_ascii_whitespace().next())
                .unwrap_or_default()
                .to_owned(),
        };
        let Ok(id) = number.parse::<ExternalId>() else {
            continue;
        };
        let mut nodes: BTreeMap<String, Mask> = BTreeMap::new();
        let mut present: Vec<String> = Vec::new();
        for word in line.split_ascii_whitespace() {
            if let Some(names) = word.strip_prefix("Nodes=") {
                // On which GPUs of these nodes it is stays unknown: they take no jobs.
                present = expand(names).unwrap_or_default();
            } else if let Some(gres) = word.strip_prefix("GRES=") {
                for name in present.drain(..) {
                    *nodes.entry(name).or_default() |= indices(gres);
                }
            }
        }
        if !nodes.is_empty() {
            found.insert(id, nodes);
        }
    }
    found
}

/// The indices in `gpu:a100:3(IDX:0-1,3)` or `shard:2(IDX:0)`; several entries are joined.
fn indices(gres: &str) -> Mask {
    let mut mask = 0;
    for part in gres.split("(IDX:").skip(1) {
        let inside = part.split(')').next().unwrap_or_default();
        for span in inside.split(',') {
            let (low, high) = span.split_once('-').unwrap_or((span, span));
            if let (Ok(low), Ok(high)) = (low.parse::<u32>(), high.parse::<u32>()) {
                (low..=high.min(63)).for_each(|index| mask |= 1 << index);
            }
        }
    }
    mask
}

/// Sets nodes apart: which they are, by the number of their shards. The shards of one GPU, which are the same everywhere.
///
/// # Errors
/// A name that is no node of the partition; a node without shards, with more than [`SHARDS_MAX`] or no whole number for each GPU,
/// or with another number than the others.
pub(super) fn set_apart(nodes: &mut [NodeSeen], names: &[String], shards: &[u32]) -> Result<u32, Error> {
    let mut per_gpu = 0;
    for name in names {
        let bad = |value: String, allowed: String| {
            let hint = "name nodes of the partition whose GPUs have the same number of shards each (Gres=gpu:N,shard:M)";
            Error::Problem(Problem::new("share_nodes", value, allowed, hint))
        };
        let found = nodes.iter_mut().zip(shards).find(|(node, _)| node.name == *name);
        let Some((node, own)) = found else {
            return Err(bad(name.clone(), "nodes with GPUs of the partition".into()));
        };
        let each = own / node.num_gpus.max(1);
        if !(1..=SHARDS_MAX).contains(&each)
            || each * node.num_gpus != *own
            || (per_gpu != 0 && each != per_gpu)
        {
            let value = format!("{name} with {own} shards on {} GPUs", node.num_gpus);
            let allowed = match per_gpu {
                0 => format!("1 to {SHARDS_MAX} shards on each GPU"),
                num => format!("{num} shards on each GPU, as on the nodes before it"),
            };
            return Err(bad(value, allowed));
        }
        per_gpu = each;
        node.shared = Some(SharedNode { gpus_taken: 0 });
    }
    Ok(per_gpu)
}

/// Completes what was seen of shares: how large they are, on which GPUs they run, and what of the nodes set apart jobs hold that
/// are left to Slurm. A GPU that these and the daemon's shares have between them stays in sight: so does one whose last job but
/// one is just ending.
pub(super) fn complete(jobs: &mut [JobSeen], nodes: &mut [NodeSeen], per_gpu: u32, details: &str) {
    let held = held_gpus(details);
    let rows: BTreeMap<String, usize> = nodes
        .iter()
        .enumerate()
        .map(|(row, node)| (node.name.clone(), row))
        .collect();
    let mut ours: BTreeMap<usize, Mask> = BTreeMap::new();
    for job in jobs {
        let of_job = held.get(&job.id);
        let mask_on = |node: &str| of_job.and_then(|nodes| nodes.get(node)).copied().unwrap_or(0);
        if let Some(share) = &mut job.share {
            share.gpu_milli = gpu_milli(share.shards, per_gpu);
            let mask = job.nodes.first().map_or(0, |node| mask_on(node));
            share.gpu = (mask.count_ones() == 1).then(|| mask.trailing_zeros());
            block_too_large(job, per_gpu);
        }
        if !matches!(job.phase, Phase::Running | Phase::Foreign { .. }) {
            continue;
        }
        let is_running = job.phase == Phase::Running;
        let mut misplaced = None;
        for name in &job.nodes {
            let Some(row) = rows.get(name).copied() else {
                continue;
            };
            let mask = mask_on(name);
            let wrong = match (&mut nodes[row].shared, job.share) {
                (Some(_), Some(_)) if is_running => {
                    *ours.entry(row).or_default() |= mask;
                    None
                }
                (Some(shared), _) => {
                    shared.gpus_taken |= mask;
                    if mask == 0 {
                        // It holds GPUs, and it is not known which.
                        nodes[row].state = closed(nodes[row].state);
                    }
                    Some("holds GPUs of a node whose GPUs are given in shares")
                }
                (None, Some(_)) => Some("has a share of a GPU of a node that is not in share_nodes"),
                (None, None) => None,
            };
            misplaced = misplaced.or(wrong.map(|wrong| format!("{wrong} ({name})")));
        }
        if let Some(reason) = misplaced.filter(|_| is_running) {
            job.phase = Phase::Foreign { reason };
        }
    }
    for (row, mask) in ours {
        if let Some(shared) = &mut nodes[row].shared {
            shared.gpus_taken &= !mask;
        }
    }
}

/// More shards than a GPU has: Slurm takes such a job and never starts it, nor, in order of priority, what is behind it.
fn block_too_large(job: &mut JobSeen, per_gpu: u32) {
    let shards = job.share.map_or(0, |share| share.shards);
    if shards > per_gpu && job.phase == Phase::Loose {
        job.phase = Phase::Blocked {
            reason: format!("asks for {shards} shards, and no GPU has more than {per_gpu}"),
        };
    }
}

/// A node that takes no jobs in this round.
fn closed(state: NodeState) -> NodeState {
    match state {
        NodeState::Up => NodeState::Draining,
        other => other,
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
