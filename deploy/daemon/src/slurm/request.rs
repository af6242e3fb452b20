//! What a job asks of Slurm, as `squeue` prints it: GPUs or a share of one, nodes, a time limit.

use pleach_tables::slurm::span_s;

use super::shares;
use super::table::is_null;
use crate::snapshot::Share;

/// What a job asks for.
pub(super) struct Asked {
    pub(super) gpu_type: Option<String>,
    pub(super) gpus_per_node: u32,
    pub(super) num_nodes: u32,
    /// Of one GPU; none: whole ones.
    pub(super) shards: Option<u32>,
}

impl Asked {
    /// In the place of what cannot be said in the tables.
    const NOTHING: Asked = Asked {
        gpu_type: None,
        gpus_per_node: 1,
        num_nodes: 1,
        shards: None,
    };
}

impl Asked {
    /// The share as it was asked for; how much of a GPU that is depends on the nodes.
    pub(super) fn share(&self) -> Option<Share> {
        self.shards.map(|shards| Share {
            shards,
            gpu_milli: 1000,
            gpu: None,
        })
    }
}

/// What a job asks for, and why that cannot be said in the tables. Where Slurm counts its GPUs `in_all`, those that it asks for by
/// task, by socket or by job are shared out evenly over its nodes.
pub(super) fn asked(
    (tres, in_all): ([&str; 4], Option<u32>),
    num_nodes: &str,
    gives_shares: bool,
) -> (Asked, Option<String>) {
    match demand(tres, in_all, num_nodes, gives_shares) {
        Ok(asked) => (asked, None),
        Err(why) => (Asked::NOTHING, Some(why)),
    }
}

/// Whether some of it is GPUs or parts of them, and not other devices alone.
pub(super) fn is_of_gpus(tres: &[&str]) -> bool {
    let entries = tres.iter().flat_map(|text| text.split(','));
    let mut devices = entries.map(|entry| {
        let entry = entry.strip_prefix("gres").unwrap_or(entry);
        entry.trim_start_matches([':', '/'])
    });
    devices.any(|device| {
        ["gpu", "shard", "mps"]
            .iter()
            .any(|kind| device.starts_with(kind))
    })
}

/// Of the requests by node, by job, by task and by socket.
fn demand(
    [per_node, per_job, per_task, per_socket]: [&str; 4],
    in_all: Option<u32>,
    num_nodes: &str,
    gives_shares: bool,
) -> Result<Asked, String> {
    let num_nodes: u32 = match num_nodes.parse() {
        Ok(num) if num >= 1 => num,
        _ => return Err(format!("asks for {num_nodes} nodes")),
    };
    let is_by_node = is_null(per_task) && is_null(per_socket) && is_null(per_job);
    if let Some(all) = in_all.filter(|_| !is_by_node) {
        let each = all.div_ceil(num_nodes);
        if (1..=64).contains(&each) {
            let texts = [per_node, per_job, per_task, per_socket];
            let kind = texts
                .iter()
                .find(|text| !is_null(text))
                .and_then(|text| gpu_type(text));
            return Ok(Asked {
                gpu_type: kind.map(str::to_owned),
                gpus_per_node: each,
                num_nodes,
                shards: None,
            });
        }
    }
    if !is_null(per_task) || !is_null(per_socket) {
        return Err("asks for GPUs by task or socket".into());
    }
    let text = match (is_null(per_node), is_null(per_job)) {
        (false, true) => per_node,
        (true, false) if num_nodes == 1 => per_job,
        _ => return Err("asks for GPUs on nodes that Slurm chooses".into()),
    };
    let text = text
        .strip_prefix("gres:")
        .or_else(|| text.strip_prefix("gres/"))
        .unwrap_or(text);
    if gives_shares
        && num_nodes == 1
        && let Some((gpu_type, shards)) = shares::asked(text)
    {
        return Ok(Asked {
            gpu_type,
            shards: Some(shards),
            ..Asked::NOTHING
        });
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (kind, count) = match parts.as_slice() {
        ["gpu"] => (None, "1"),
        ["gpu", last] if last.bytes().all(|byte| byte.is_ascii_digit()) => (None, *last),
        ["gpu", kind] => (Some(*kind), "1"),
        ["gpu", kind, count] => (Some(*kind), *count),
        _ => return Err(format!("asks for {text}")),
    };
    match count.parse() {
        Ok(count) if (1..=64).contains(&count) && !text.contains(',') => Ok(Asked {
            gpu_type: kind.map(str::to_owned),
            gpus_per_node: count,
            num_nodes,
            shards: None,
        }),
        _ => Err(format!("asks for {text}")),
    }
}

/// The type in `gres:gpu:a100:2` or `gpu:a100:2`.
fn gpu_type(text: &str) -> Option<&str> {
    let text = text
        .strip_prefix("gres:")
        .or_else(|| text.strip_prefix("gres/"))
        .unwrap_or(text);
    let kind = text.strip_prefix("gpu:")?.split(':').next()?;
    let is_number = kind.bytes().all(|byte| byte.is_ascii_digit());
    (!is_number && !kind.is_empty()).then_some(kind)
}

/// `UNLIMITED`, `MM:SS`, `HH:MM:SS` or `D-HH:MM:SS` in seconds.
pub(super) fn time_limit(text: &str) -> Result<Option<i64>, ()> {
    match text {
        "UNLIMITED" | "NOT_SET" | "INVALID" => Ok(None),
        _ => span_s(text).map(|limit_s| Some(limit_s as i64)).ok_or(()),
    }
}
