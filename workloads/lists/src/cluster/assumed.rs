//! What a description of a cluster leaves out, filled in.

use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, TenantSpec};

use crate::plans::Gpu;

/// Nodes that share the fast network where their number is not given. *Assumed*, as for published lists.
const NODES_PER_RACK: u32 = 16;
/// Memory of a GPU of an unknown type, GiB. *Assumed*.
const MEMORY_GIB: f64 = 32.0;

/// Fills in GPU types and their memory, racks and tenants where they are not given; says what was assumed, in at most one line.
/// A description that is whole stays as it is.
pub fn assume(cluster: &mut ClusterSpec) -> Option<String> {
    let mut assumed = Vec::new();
    let groups = cluster.node_groups.clone();
    for group in &groups {
        let is_known = cluster.gpu_types.iter().any(|gpu| gpu.name == group.gpu_type);
        if !is_known && cluster.gpu_types.len() < 64 && !group.gpu_type.is_empty() {
            cluster.gpu_types.push(GpuTypeSpec {
                name: group.gpu_type.clone(),
                memory_gib: 0.0,
                mig: None,
            });
        }
    }
    for gpu in cluster.gpu_types.iter_mut().filter(|gpu| gpu.memory_gib == 0.0) {
        gpu.memory_gib = memory_gib(&gpu.name);
        assumed.push(format!("{} has {} GiB", gpu.name, gpu.memory_gib));
    }
    let mut is_racked = false;
    for group in cluster
        .node_groups
        .iter_mut()
        .filter(|group| group.nodes_per_rack == 0)
    {
        group.nodes_per_rack = NODES_PER_RACK.min(group.count.max(1));
        is_racked = true;
    }
    if is_racked {
        assumed.push(format!("racks of {NODES_PER_RACK} nodes"));
    }
    if cluster.tenants.is_empty() {
        let quota_gpus = u32::try_from(cluster.num_gpus()).unwrap_or(u32::MAX);
        cluster.tenants.push(TenantSpec {
            name: "all".into(),
            quota_gpus,
        });
        assumed.push("one tenant, who owns it all".into());
    }
    (!assumed.is_empty()).then(|| format!("cluster, assumed: {}", assumed.join("; ")))
}

/// Memory that a type's name tells (`A100-80GB`, `a100_40g`, `1g.5gb`), else that in which it is sold.
fn memory_gib(name: &str) -> f64 {
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split(['-', '_', '.', ' ']).rev();
    let told = parts.find_map(|part| {
        let digits = part
            .strip_suffix("gib")
            .or(part.strip_suffix("gb"))
            .or(part.strip_suffix('g'))?;
        digits
            .parse::<f64>()
            .ok()
            .filter(|memory| (4.0..=1e4).contains(memory))
    });
    told.or_else(|| Gpu::of(plain(&lower)).map(|gpu| gpu.memory_gb))
        .unwrap_or(MEMORY_GIB)
}

/// A type's name without its maker.
fn plain(lower: &str) -> &str {
    let mut rest = lower;
    for maker in ["nvidia", "tesla", "geforce", "quadro"] {
        rest = rest
            .strip_prefix(maker)
            .unwrap_or(rest)
            .trim_start_matches(['-', '_', ' ']);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::cluster_spec::NodeGroup;

    #[test]
    fn memory_is_that_of_the_name_or_of_the_type() {
        for (name, memory) in [
            ("A100-80GB", 80.0),
            ("a100_40g", 40.0),
            ("nvidia_a100-sxm4-40gb", 40.0),
            ("1g.5gb", 5.0),
            ("V100", 32.0),
            ("nvidia_h100", 80.0),
            ("thing", 32.0),
        ] {
            assert_eq!(memory_gib(name), memory, "{name}");
        }
    }

    #[test]
    fn holes_are_filled_and_told_and_a_whole_description_stays() {
        let mut cluster = ClusterSpec {
            node_groups: vec![NodeGroup {
                count: 2,
                gpus_per_node: 4,
                gpu_type: "V100".into(),
                ..NodeGroup::default()
            }],
            ..ClusterSpec::default()
        };
        let line = assume(&mut cluster).unwrap();
        assert_eq!(
            line,
            "cluster, assumed: V100 has 32 GiB; racks of 16 nodes; one tenant, who owns it all"
        );
        cluster.validate().unwrap();
        assert_eq!(cluster.node_groups[0].nodes_per_rack, 2);
        let before = cluster.clone();
        assert_eq!(assume(&mut cluster), None);
        assert_eq!(cluster, before);
    }
}
