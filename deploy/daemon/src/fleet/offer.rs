//! What a node has left to give, and its GPUs by their numbers in the tables.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::NodeState;

use crate::snapshot::{JobSeen, NodeSeen, Phase, Snapshot};

/// A GPU type of the tables: its name in the batch system, and whether its GPUs are given in shares.
pub(super) type Kind<'a> = (&'a str, bool);

/// Nodes that take part, with the GPUs that are left to give.
pub(super) struct Offer<'a> {
    pub(super) seen: &'a NodeSeen,
    pub(super) kind: usize,
    pub(super) num_gpus: u32,
    /// What others have of its CPUs and host memory.
    pub(super) of_others: Inputs,
    pub(super) state: NodeState,
}

impl Offer<'_> {
    /// The GPU of the tables that is the one with this index in the node; none where others have it.
    pub(super) fn row_of(&self, index: u32) -> Option<u32> {
        let taken = self.seen.shared.map_or(0, |shared| shared.gpus_taken);
        let is_there = index < self.seen.num_gpus && taken >> index & 1 == 0;
        is_there.then(|| index - (taken & ((1 << index) - 1)).count_ones())
    }
}

/// The name of a GPU type in the tables.
pub(super) fn named((name, is_shared): Kind<'_>) -> String {
    match is_shared {
        true => format!("{name} in shares"),
        false => name.to_owned(),
    }
}

/// CPUs and host memory, MiB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Inputs {
    pub(super) num_cpus: u32,
    pub(super) memory_mib: u32,
}

impl Inputs {
    /// What a job has on each of its nodes.
    pub(super) fn of(job: &JobSeen) -> Inputs {
        Inputs {
            num_cpus: job.num_cpus.div_ceil(job.num_nodes.max(1)),
            memory_mib: job.terms.memory_mib,
        }
    }

    pub(super) fn add(&mut self, more: Inputs) {
        self.num_cpus = self.num_cpus.saturating_add(more.num_cpus);
        self.memory_mib = self.memory_mib.saturating_add(more.memory_mib);
    }

    /// What others have of a node where jobs of the tables have so much; nothing where it was not looked at.
    pub(super) fn of_others(node: &NodeSeen, ours: Inputs) -> Inputs {
        let Some(host) = node.host else {
            return Inputs::default();
        };
        let rest = |all: u32, free: u32, ours: u32| all.saturating_sub(free).saturating_sub(ours);
        Inputs {
            num_cpus: rest(host.num_cpus, node.num_cpus_free, ours.num_cpus),
            memory_mib: rest(host.memory_mib, host.memory_mib_free, ours.memory_mib),
        }
    }
}

/// Nodes with what is left of them, and the GPU types that they are of.
pub(super) fn offers(snapshot: &Snapshot) -> (Vec<Offer<'_>>, Vec<Kind<'_>>) {
    let mut own: BTreeMap<&str, (u32, Inputs, bool)> = BTreeMap::new();
    for job in snapshot.jobs.iter().filter(|job| job.is_placed()) {
        for node in &job.nodes {
            let entry = own.entry(node).or_default();
            // What is not running yet holds nothing that is counted.
            if job.phase == Phase::Running {
                // Several shares may be one GPU of those that are counted: none is taken out of what others have.
                entry.0 += job.share.map_or(job.gpus_per_node, |_| 0);
                entry.1.add(Inputs::of(job));
            }
            entry.2 = true;
        }
    }
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    let mut offers = Vec::new();
    for seen in &snapshot.nodes {
        let (used, ours, has_jobs) = own.get(seen.name.as_str()).copied().unwrap_or_default();
        let num_gpus = match seen.shared {
            None => {
                let leaving = snapshot.site.leaving.get(&seen.name).copied().unwrap_or(0);
                let of_others = seen.num_gpus_used.saturating_sub(used).saturating_sub(leaving);
                seen.num_gpus - of_others.min(seen.num_gpus)
            }
            Some(shared) => seen.num_gpus - shared.gpus_taken.count_ones().min(seen.num_gpus),
        };
        if num_gpus == 0 {
            continue;
        }
        let own_kind = (seen.gpu_type.as_str(), seen.shared.is_some());
        let kind = kinds
            .iter()
            .position(|kind| *kind == own_kind)
            .unwrap_or_else(|| {
                kinds.push(own_kind);
                kinds.len() - 1
            });
        offers.push(Offer {
            seen,
            kind,
            num_gpus,
            of_others: Inputs::of_others(seen, ours),
            // The batch system will say what becomes of the jobs of a node that is down.
            state: match seen.state {
                NodeState::Down if has_jobs => NodeState::Draining,
                state => state,
            },
        });
    }
    (offers, kinds)
}
