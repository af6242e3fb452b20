//! Which jobs could run on the driven nodes, whatever partition they name.
//!
//! A partition beside the driven one holds some of its nodes with GPUs. Its jobs are ranked with all others, on those nodes. Slurm
//! itself starts jobs of a partition with a higher `PriorityTier` first, whatever their factors, so such partitions are reported.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::rules::{Partition, Partitions};

/// What tells of all partitions.
pub(super) const SHOW_PARTITIONS: [&str; 4] = ["-a", "-o", "show", "partition"];

/// The scope as Slurm has it at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// The partition that is driven.
    pub(super) name: String,
    pub(super) own: Option<Partition>,
    /// Others that hold some of its nodes with GPUs, with those nodes.
    beside: BTreeMap<String, (Partition, BTreeSet<String>)>,
    /// Nodes with GPUs of the driven partition.
    pub(super) nodes: BTreeSet<String>,
}

impl Reach {
    /// Of the nodes with GPUs of the driven partition.
    pub(super) fn read<'n>(
        name: &str,
        nodes: impl Iterator<Item = &'n str>,
        partitions: &Partitions<'_>,
    ) -> Reach {
        let mut reach = Reach {
            name: name.to_owned(),
            nodes: nodes.map(str::to_owned).collect(),
            ..Reach::default()
        };
        for (name, (limits, nodes)) in partitions {
            if *name == reach.name {
                reach.own = Some(*limits);
                continue;
            }
            // Of which the nodes cannot be read all jobs are left to Slurm.
            let nodes = nodes.iter().flatten();
            let here: BTreeSet<String> = nodes
                .filter(|node| reach.nodes.contains(*node))
                .cloned()
                .collect();
            if !here.is_empty() {
                reach.beside.insert((*name).to_owned(), (*limits, here));
            }
        }
        reach
    }

    /// Whether a job of these partitions may run on driven nodes.
    pub(super) fn is_here(&self, partitions: &str) -> bool {
        let mut names = partitions.split(',');
        names.any(|name| name == self.name || self.beside.contains_key(name))
    }

    /// The partition of a job that may run here: its name, its limits, and its nodes where those are not all.
    pub(super) fn of(&self, partitions: &str) -> (&str, Partition, Option<&BTreeSet<String>>) {
        let own = (self.name.as_str(), self.own.unwrap_or(Partition::UNLIMITED), None);
        if partitions.split(',').any(|name| name == self.name) {
            return own;
        }
        let named = partitions
            .split(',')
            .find_map(|name| self.beside.get_key_value(name));
        named.map_or(own, |(name, (limits, nodes))| (name, *limits, Some(nodes)))
    }

    /// A sentence about partitions whose jobs Slurm starts before or behind all others; empty where there are none.
    pub(super) fn tiers(&self) -> String {
        let tier = self.own.map_or(1, |own| own.tier);
        let others = self.beside.iter().filter(|(_, (limits, _))| limits.tier != tier);
        let others = others.map(|(name, (limits, _))| format!("{name} (PriorityTier {})", limits.tier));
        match others.collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            others => format!(
                "partitions on driven nodes whose jobs Slurm starts before or behind all of {} (PriorityTier {tier}), whatever the order: {}",
                self.name,
                others.join(", ")
            ),
        }
    }
}

/// Partitions that hold nodes of the driven one, itself first.
pub(super) fn beside<'t>(driven: &'t str, all: &Partitions<'t>) -> Vec<&'t str> {
    let own = all.get(driven).into_iter();
    let own: HashSet<&String> = own.flat_map(|(_, nodes)| nodes.iter().flatten()).collect();
    let others = all.iter().filter(|(name, (_, nodes))| {
        **name != driven && nodes.iter().flatten().any(|node| own.contains(node))
    });
    std::iter::once(driven)
        .chain(others.map(|(name, _)| *name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::rules::partitions;
    use super::*;

    const TEXT: &str = "PartitionName=main Nodes=g[1-3],c1 State=UP PriorityTier=1\n\
                        PartitionName=side Nodes=g1,c9 MaxTime=01:00:00 State=UP PriorityTier=1\n\
                        PartitionName=all Nodes=g[1-3],h[1-2],c1 State=UP PriorityTier=5\nPartitionName=other Nodes=h1 State=UP\n\
                        PartitionName=cpu Nodes=c1 State=UP\nPartitionName=none Nodes=(null) State=UP\n";

    fn reach(text: &str) -> Reach {
        Reach::read("main", ["g1", "g2", "g3"].into_iter(), &partitions(text))
    }

    #[test]
    fn a_partition_is_in_scope_by_its_nodes_and_not_by_its_name() {
        assert_eq!(beside("main", &partitions(TEXT)), ["main", "all", "cpu", "side"]);
        let reach = reach(TEXT);
        for (partitions, is_here) in [
            ("main", true),
            ("other,main", true),
            ("side", true),
            ("all", true),
            ("other,all", true),
            ("other", false),
            // It has no node with GPUs.
            ("cpu", false),
            ("none", false),
        ] {
            assert_eq!(reach.is_here(partitions), is_here, "{partitions}");
        }
        let (name, limits, nodes_of) = reach.of("other,side");
        assert_eq!((name, limits.limit_s_max), ("side", Some(3600)));
        assert!(nodes_of.is_some_and(|nodes| nodes.len() == 1 && nodes.contains("g1")));
        assert!(reach.of("side,main").2.is_none());
        let told = reach.tiers();
        assert!(
            told.contains(": all (PriorityTier 5)") && !told.contains("side"),
            "{told}"
        );
    }

    #[test]
    fn one_partition_alone_has_no_neighbours() {
        let text = "PartitionName=main Nodes=g[1-3] State=UP\nPartitionName=other Nodes=h1 State=UP\n";
        for text in [text, ""] {
            assert_eq!(beside("main", &partitions(text)), ["main"]);
            let reach = reach(text);
            assert!(reach.is_here("main") && !reach.is_here("other") && reach.tiers().is_empty());
        }
    }
}
