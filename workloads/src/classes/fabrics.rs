//! The links of a cluster whose list does not say: those of the site that the list is of, else those that its GPUs usually come with.

use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup};
use pleach_scheduler::physics::links::Fabric;

/// Beginnings of the names of lists, and the fabric of their sites.
///
/// # Source
/// Philly: its study (ATC'19). Acme: NSDI'24. Helios, ITP and Synergy: V100 nodes on InfiniBand, its speed *assumed*. PAI and its
/// successor of 2023: mixed small GPUs on Ethernet, its speed *assumed*. Gavel: the links that its spread gangs show.
const SITES: [(&str, &str); 10] = [
    ("philly", "philly"),
    ("helios", "v100-edr"),
    ("venus", "v100-edr"),
    ("saturn", "v100-edr"),
    ("itp", "v100-edr"),
    ("synergy", "v100-edr"),
    ("acme", "acme-seren"),
    ("pai", "ethernet-25"),
    ("openb", "ethernet-25"),
    ("gavel", "gavel"),
];

/// Parts of the names of GPU types, and what such nodes usually have (*assumed*). Longer ones stand before those that they hold.
const TYPES: [(&str, &str); 16] = [
    ("gb300", "gb300-nvl72"),
    ("gb200", "gb200-nvl72"),
    ("b300", "b300-xdr"),
    ("b200", "b200-ndr"),
    ("h200", "h200-ndr"),
    ("h100", "hgx-h100-ndr"),
    ("h800", "hgx-h100-ndr"),
    ("a100", "dgx-a100-hdr"),
    ("a800", "dgx-a100-hdr"),
    ("v100", "v100-edr"),
    ("p100", "ethernet-25"),
    ("a10", "ethernet-25"),
    ("t4", "ethernet-25"),
    ("k80", "ethernet-25"),
    ("g2", "ethernet-25"),
    ("p4", "ethernet-25"),
];

/// The fabric that stands for a list's; none where its name and the GPUs that it has most of tell nothing.
pub(super) fn fabric_of(list: &str, cluster: &ClusterSpec) -> Option<Fabric> {
    // An environment is named after the site of its jobs.
    let list = list.to_ascii_lowercase();
    let list = list.strip_prefix("pleach/").unwrap_or(&list);
    let site = SITES.iter().find(|(beginning, _)| list.starts_with(beginning));
    let of_type = || {
        let num_gpus = |group: &&NodeGroup| group.count * group.gpus_per_node;
        let most = cluster.node_groups.iter().max_by_key(num_gpus)?;
        let kind = most.gpu_type.to_ascii_lowercase();
        TYPES.iter().find(|(part, _)| kind.contains(part))
    };
    let (_, preset) = site.or_else(of_type)?;
    let mut fabric = Fabric::from_name(preset).ok()?;
    // A node with fewer GPUs than the preset's has as many NICs.
    let fewest = cluster
        .node_groups
        .iter()
        .map(|group| group.gpus_per_node)
        .min()?;
    fabric.between.nics_per_node = fabric.between.nics_per_node.min(fewest);
    Some(fabric)
}
