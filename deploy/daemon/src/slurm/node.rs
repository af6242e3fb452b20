//! A node as `sinfo -O` shows it.

use pleach_scheduler::cluster::NodeState;

use super::records::{Lines, all};
use super::table::{fields, is_null, number};
use crate::error::Error;
use crate::snapshot::{HostSeen, NodeSeen};
use pleach_site::slurm::{devices, expand};

/// What is asked of `sinfo -N -O`.
pub(super) const NODE_FIELDS: &str = "Memory:|,AllocMem:|,Weight:|,features_act:|,NodeList:|,StateLong:|,Gres:|,GresUsed:|,\
CPUsState:|,Partition:|";
const NUM_NODE_FIELDS: usize = 10;
pub(super) const SINFO: &str = "sinfo";

/// A node with GPUs of one type; none for others. `row` is the line's, from 1.
///
/// # Errors
/// A line that the command cannot have printed.
fn node(row: usize, line: &str) -> Result<Option<Found>, Error> {
    let [
        memory,
        allocated,
        weight,
        features,
        name,
        state,
        gres,
        used,
        cpus,
        _,
    ] = fields::<NUM_NODE_FIELDS>(SINFO, row, line)?;
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
    // Others are those of nodes that take no jobs.
    let [_, idle, _, all] = cpus[..] else {
        return Err(bad("has no CPUs as used/idle/other/all"));
    };
    let shards = devices(gres).into_iter().filter(|device| device.kind == "shard");
    let shards = shards.map(|device| device.num).fold(0, u32::saturating_add);
    let number = |what, text| number::<u32>(SINFO, row, line, what, text);
    let (memory_mib, in_use) = (number("memory", memory)?, number("memory in use", allocated)?);
    let node = NodeSeen {
        name: name.to_owned(),
        gpu_type: gpu.of_type.unwrap_or("gpu").to_owned(),
        num_gpus,
        num_gpus_used: used.min(num_gpus),
        num_cpus_free: number("idle CPUs", idle)?,
        host: Some(HostSeen {
            num_cpus: number("CPUs", all)?,
            memory_mib,
            memory_mib_free: memory_mib.saturating_sub(in_use),
        }),
        state: node_state(state),
        shared: None,
    };
    Ok(Some(Found {
        node,
        num_shards: shards,
        features: if is_null(features) { "" } else { features }.to_owned(),
        weight: weight.parse().unwrap_or(0),
        is_idle: state.starts_with("idle"),
    }))
}

/// A node with what rules are about.
#[derive(Clone, Debug)]
pub(super) struct Found {
    node: NodeSeen,
    num_shards: u32,
    /// As a list.
    features: String,
    weight: u64,
    is_idle: bool,
}

/// The nodes of a text.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// Nodes with GPUs of one type, lighter ones first, as Slurm takes them.
    pub(super) tables: Vec<NodeSeen>,
    /// Of each of them.
    pub(super) num_shards: Vec<u32>,
    /// Of each of them, as lists.
    pub(super) features: Vec<String>,
    /// Names of those that Slurm calls idle, of whose GPUs it counts some as used all the same.
    pub(super) leaking: Vec<String>,
}

impl Nodes {
    /// From the lines of [`NODE_FIELDS`].
    ///
    /// # Errors
    /// As [`node`]; a node that is named twice.
    pub(super) fn read(known: &mut Lines<Option<Found>>, text: &str) -> Result<Nodes, Error> {
        let (mut nodes, mut found) = (Nodes::default(), Vec::new());
        all(known, text, node, |one| found.extend(one.clone()))?;
        let mut names: Vec<&str> = found.iter().map(|found| found.node.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let is_it = |line: &str| {
                let found = node(0, line).ok().flatten();
                found.is_some_and(|found| found.node.name == twice[0])
            };
            let mut lines = (1..).zip(text.lines()).filter(|(_, line)| is_it(line));
            let (row, line) = lines.nth(1).unwrap_or_default();
            return Err(Error::garbage(
                SINFO,
                row,
                line,
                "names a node for the second time",
            ));
        }
        found.sort_by_key(|found| found.weight);
        for found in found {
            if found.is_idle && found.node.num_gpus_used > 0 {
                nodes.leaking.push(found.node.name.clone());
            }
            nodes.num_shards.push(found.num_shards);
            nodes.features.push(found.features);
            nodes.tables.push(found.node);
        }
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
