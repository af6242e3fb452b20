//! What a job asks of Slurm, as `squeue` prints it: GPUs or a share of one, nodes.
//!
//! What cannot be said in the tables is said as nearly as can be: the GPUs that Slurm counts, shared out evenly over the nodes. The
//! policy ranks the job by that, and Slurm alone judges where it runs. So no wish takes a job out of the order.

use super::shares;
use super::table::is_null;
use crate::snapshot::Share;

/// Most GPUs of a node.
const GPUS_MAX: u32 = 64;

/// What a job asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) gpu_type: Option<String>,
    pub(super) gpus_per_node: u32,
    pub(super) num_nodes: u32,
    /// Of one GPU; none: whole ones.
    pub(super) shards: Option<u32>,
    /// Whether it is said as it was asked for, and not as what comes nearest.
    pub(super) is_exact: bool,
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

/// What a job asks for by its requests by node, by job, by task and by socket, of which Slurm counts `in_all` GPUs.
pub(super) fn asked(tres: [&str; 4], in_all: Option<u32>, num_nodes: &str, gives_shares: bool) -> Asked {
    let num_nodes = num_nodes.parse().unwrap_or(1).max(1);
    let (mut texts, [per_node, per_job, ..]) = (tres.into_iter().filter(|text| !is_null(text)), tres);
    let first = bare(texts.next().unwrap_or_default());
    let is_alone = texts.next().is_none() && !first.contains(',');
    let is_one = is_alone && (!is_null(per_node) || !is_null(per_job) && num_nodes == 1);
    let share = (gives_shares && is_one && num_nodes == 1).then(|| shares::asked(first));
    if let Some((gpu_type, shards)) = share.flatten() {
        return Asked {
            gpu_type,
            shards: Some(shards),
            gpus_per_node: 1,
            num_nodes,
            is_exact: true,
        };
    }
    let each = count(first).filter(|_| is_one);
    let is_exact = each.is_some();
    let each = each.or_else(|| Some(in_all?.div_ceil(num_nodes)));
    Asked {
        gpu_type: gpu_type(first).filter(|_| is_alone).map(str::to_owned),
        gpus_per_node: each.unwrap_or(1).clamp(1, GPUS_MAX),
        num_nodes,
        shards: None,
        is_exact,
    }
}

/// Whether some of it is a part of a GPU.
pub(super) fn is_of_parts(tres: &[&str]) -> bool {
    let mut entries = tres.iter().flat_map(|text| text.split(',')).map(bare);
    entries.any(|device| device.starts_with("shard") || device.starts_with("mps"))
}

/// Whether some of it is GPUs or parts of them, and not other devices alone.
pub(super) fn is_of_gpus(tres: &[&str]) -> bool {
    let mut entries = tres.iter().flat_map(|text| text.split(',')).map(bare);
    is_of_parts(tres) || entries.any(|device| device.starts_with("gpu"))
}

/// Without what releases put before it.
fn bare(text: &str) -> &str {
    text.trim_start_matches("gres:").trim_start_matches("gres/")
}

/// The number in `gpu:a100:2`, `gpu:2` or `gpu`; none of other devices.
fn count(text: &str) -> Option<u32> {
    let parts: Vec<&str> = text.split([':', '=']).collect();
    match parts.as_slice() {
        ["gpu"] => Some(1),
        ["gpu", last] => Some(last.parse().unwrap_or(1)),
        ["gpu", _, num] => num.parse().ok(),
        _ => None,
    }
}

/// The type in `gpu:a100:2`.
fn gpu_type(text: &str) -> Option<&str> {
    let kind = text.strip_prefix("gpu:")?.split([':', '=']).next()?;
    let is_number = kind.bytes().all(|byte| byte.is_ascii_digit());
    (!is_number && !kind.is_empty()).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_job_asks_for_it_is_said_as_nearly_as_can_be() {
        let none = "N/A";
        for (tres, in_all, num_nodes, kind, each) in [
            (["gres:gpu:2", none, none, none], None, "1", None, 2),
            (["gres/gpu:a100:4", none, none, none], None, "2", Some("a100"), 4),
            (["gres:gpu", none, none, none], None, "1", None, 1),
            (["gres:gpu:a100", none, none, none], None, "1", Some("a100"), 1),
            ([none, "gres:gpu:10", none, none], Some(10), "2", None, 5),
            ([none, "gres:gpu:3", none, none], None, "1", None, 3),
            ([none, none, "gres/gpu=1", none], Some(4), "1", None, 4),
            (
                [none, none, none, "gres:gpu:v100:1"],
                Some(2),
                "1",
                Some("v100"),
                2,
            ),
            (
                ["gres:gpu:a100:2,gres:gpu:v100:1", none, none, none],
                Some(3),
                "1",
                None,
                3,
            ),
            (["gres:mps:50", none, none, none], None, "1", None, 1),
            (["gres:shard:3", none, none, none], None, "x", None, 1),
            ([none; 4], Some(8), "1", None, 8),
            (["gres:gpu:999", none, none, none], None, "0", None, 64),
        ] {
            let asked = asked(tres, in_all, num_nodes, false);
            assert_eq!(
                (asked.gpu_type.as_deref(), asked.gpus_per_node),
                (kind, each),
                "{tres:?}"
            );
            assert!(asked.shards.is_none() && asked.num_nodes >= 1);
        }
        assert_eq!(
            asked(["gres:shard:3", none, none, none], None, "1", true).shards,
            Some(3)
        );
        assert!(is_of_gpus(&["gres:mps:50"]) && is_of_parts(&["gres/shard=2"]));
        assert!(!is_of_gpus(&["gres:tape:1"]) && !is_of_parts(&["gres:gpu:1"]));
    }
}
