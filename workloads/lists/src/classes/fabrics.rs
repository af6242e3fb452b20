//! The links of a cluster that has none: those of its site where the list says it, else those that its GPUs usually come with.

use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup};
use pleach_scheduler::physics::links::Fabric;

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

/// The links that stand for a cluster's; none where it does not say its site's and the GPUs that it has most of tell nothing.
pub(super) fn fabric_of(cluster: &ClusterSpec) -> Option<Fabric> {
    let of_type = || {
        let num_gpus = |group: &&NodeGroup| group.count * group.gpus_per_node;
        let most = cluster.node_groups.iter().max_by_key(num_gpus)?;
        let kind = most.gpu_type.to_ascii_lowercase();
        let found = TYPES.iter().find(|(part, _)| kind.contains(part));
        found.map(|(_, preset)| *preset)
    };
    let preset = cluster.site_fabric.as_deref().or_else(of_type)?;
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
