//! What a job asks of Slurm, as `squeue` prints it: GPUs or a share of one, nodes, a time limit.

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

/// What a job asks for, and why it is left alone where it is: `strange`, else because that cannot be said in the tables.
pub(super) fn asked(
    tres: [&str; 4],
    num_nodes: &str,
    gives_shares: bool,
    strange: Option<String>,
) -> (Asked, Option<String>) {
    match demand(tres, num_nodes, gives_shares) {
        Ok(asked) => (asked, strange),
        Err(why) => (Asked::NOTHING, Some(strange.unwrap_or(why))),
    }
}

/// Of the requests by node, by job, by task and by socket.
fn demand(
    [per_node, per_job, per_task, per_socket]: [&str; 4],
    num_nodes: &str,
    gives_shares: bool,
) -> Result<Asked, String> {
    let num_nodes: u32 = match num_nodes.parse() {
        Ok(num) if num >= 1 => num,
        _ => return Err(format!("asks for {num_nodes} nodes")),
    };
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

/// `UNLIMITED`, `MM:SS`, `HH:MM:SS` or `D-HH:MM:SS` in seconds.
pub(super) fn time_limit(text: &str) -> Result<Option<i64>, ()> {
    if matches!(text, "UNLIMITED" | "NOT_SET" | "INVALID") {
        return Ok(None);
    }
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let mut sum = 0_i64;
    for part in rest.split(':') {
        let part: u32 = part.parse().map_err(|_| ())?;
        sum = sum
            .checked_mul(60)
            .ok_or(())?
            .checked_add(i64::from(part))
            .ok_or(())?;
    }
    let days: u16 = days.parse().map_err(|_| ())?;
    if rest.contains(':') {
        Ok(Some(i64::from(days) * 86_400 + sum))
    } else {
        Err(())
    }
}
