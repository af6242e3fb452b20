//! A node as `sinfo -O` shows it.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::NodeState;

use super::table::{fields, is_null, number};
use crate::error::Error;
use crate::snapshot::{HostSeen, NodeSeen};
use pleach_tables::slurm::{devices, expand};

/// What is asked of `sinfo -N -O`.
pub(super) const NODE_FIELDS: &str = "NodeList:|,StateLong:|,Gres:|,GresUsed:|,CPUsState:|,Partition:|";
const NUM_NODE_FIELDS: usize = 6;
pub(super) const SINFO: &str = "sinfo";

/// A node with GPUs of one type, and its shards; none for others. `row` is the line's, from 1.
///
/// # Errors
/// A line that the command cannot have printed.
pub(super) fn node(row: usize, line: &str) -> Result<Option<(NodeSeen, u32)>, Error> {
    let [name, state, gres, used, cpus, _] = fields::<NUM_NODE_FIELDS>(SINFO, row, line)?;
    let bad = |text: &str| Error::garbage(SINFO, row, line, text);
    if expand(name).map_or(true, |names| names != [name]) {
        return Err(bad("begins with no node"));
    }
    let mut gpus = devices(gres).into_iter().filter(|device| device.kind == "gpu");
    let (Some(gpu), None) = (gpus.next(), gpus.next()) else {
        return Ok(None);
    };
    let num_gpus = gpu.num;
    if !(1..=64).contains(&num_gpus) {
        return Ok(None);
    }
    // A share of a GPU (shard, mps) takes the GPU out of the whole ones; Slurm counts GPUs that are touched.
    let used: u32 = devices(used)
        .iter()
        .filter(|device| matches!(device.kind, "gpu" | "shard" | "mps"))
        .map(|device| device.num)
        .fold(0, u32::saturating_add);
    let cpus: Vec<&str> = cpus.split('/').collect();
    let [_, idle, _, _] = cpus[..] else {
        return Err(bad("has no CPUs as used/idle/other/all"));
    };
    let shards = devices(gres).into_iter().filter(|device| device.kind == "shard");
    let shards = shards.map(|device| device.num).fold(0, u32::saturating_add);
    let seen = NodeSeen {
        name: name.to_owned(),
        gpu_type: gpu.of_type.unwrap_or("gpu").to_owned(),
        num_gpus,
        num_gpus_used: used.min(num_gpus),
        num_cpus_free: number(SINFO, row, line, "idle CPUs", idle)?,
        host: None,
        state: node_state(state),
        shared: None,
    };
    Ok(Some((seen, shards)))
}

/// What is asked of `sinfo -N -O` where rules of the site are read.
pub(super) fn rule_node_fields() -> String {
    format!("Memory:|,AllocMem:|,Weight:|,features_act:|,{NODE_FIELDS}")
}

/// A node with what rules are about.
pub(super) struct RuleNode {
    pub(super) node: NodeSeen,
    pub(super) num_shards: u32,
    /// As a list.
    pub(super) features: String,
    pub(super) weight: u64,
}

/// As [`node`], from a line of [`rule_node_fields`].
///
/// # Errors
/// As [`node`].
pub(super) fn rule_node(row: usize, line: &str) -> Result<Option<RuleNode>, Error> {
    let found: Vec<&str> = line.splitn(5, '|').collect();
    let [memory, allocated, weight, features, rest] = found[..] else {
        return Err(Error::garbage(SINFO, row, line, "has too few fields"));
    };
    let Some((mut node, num_shards)) = node(row, rest)? else {
        return Ok(None);
    };
    let number = |what, text| number::<u32>(SINFO, row, line, what, text);
    let (memory_mib, used) = (number("memory", memory)?, number("memory in use", allocated)?);
    // Used, idle, other and all: others are those of nodes that take nobody.
    let cpus = fields::<NUM_NODE_FIELDS>(SINFO, row, rest)?[4];
    let all = cpus.rsplit('/').next().unwrap_or_default();
    node.host = Some(HostSeen {
        num_cpus: number("CPUs", all)?,
        memory_mib,
        memory_mib_free: memory_mib.saturating_sub(used),
    });
    Ok(Some(RuleNode {
        node,
        num_shards,
        features: if is_null(features) { "" } else { features }.to_owned(),
        weight: weight.parse().unwrap_or(0),
    }))
}

/// The nodes of a text.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// Nodes with GPUs of one type, lighter ones first, as Slurm takes them.
    pub(super) tables: Vec<NodeSeen>,
    /// By name.
    pub(super) num_shards: BTreeMap<String, u32>,
    /// As lists, by name; empty where rules are not read.
    pub(super) features: BTreeMap<String, String>,
}

impl Nodes {
    /// From the lines of [`NODE_FIELDS`], or of [`rule_node_fields`] where rules are read.
    ///
    /// # Errors
    /// As [`node`]; a node that is named twice.
    pub(super) fn read(text: &str, has_rules: bool) -> Result<Nodes, Error> {
        let (mut nodes, mut weights) = (Nodes::default(), BTreeMap::new());
        for (row, line) in text.lines().enumerate() {
            let found = match has_rules {
                true => rule_node(row + 1, line)?.map(|found| {
                    nodes.features.insert(found.node.name.clone(), found.features);
                    weights.insert(found.node.name.clone(), found.weight);
                    (found.node, found.num_shards)
                }),
                false => node(row + 1, line)?,
            };
            let Some((node, shards)) = found else { continue };
            if nodes.num_shards.insert(node.name.clone(), shards).is_some() {
                return Err(Error::garbage(
                    SINFO,
                    row + 1,
                    line,
                    "names a node for the second time",
                ));
            }
            nodes.tables.push(node);
        }
        nodes
            .tables
            .sort_by_key(|node| weights.get(&node.name).copied().unwrap_or(0_u64));
        Ok(nodes)
    }
}

pub(super) fn node_state(text: &str) -> NodeState {
    let word = text.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let flags = &text[word.len()..];
    match word {
        _ if word.starts_with("down") || word == "unknown" || flags.contains('*') => NodeState::Down,
        "idle" | "mixed" | "allocated" | "completing" | "planned"
            // Slurm wakes a node that sleeps (`~`) or is waking up (`#`) for the job that is let go to it.
            if flags.chars().all(|flag| "-+~#".contains(flag)) =>
        {
            NodeState::Up
        }
        _ => NodeState::Draining,
    }
}
