//! What a node has left to give, and its GPUs by their numbers in the tables.

use pleach_scheduler::cluster::NodeState;

use crate::snapshot::{JobSeen, NodeSeen};

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
