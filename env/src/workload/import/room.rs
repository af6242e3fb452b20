//! Whether a gang finds the CPU cores and the memory that it asks for.

use pleach_scheduler::spec::{ClusterSpec, ModelClass, NodeGroup, Resources};

use super::{ImportReport, RawRow};

/// Forgets what the rows ask of resources that no node of the cluster models, and counts it: a cluster given by the
/// caller may leave them out.
pub(super) fn drop_unmodelled(cluster: &ClusterSpec, rows: &mut [RawRow], report: &mut ImportReport) {
    let groups = &cluster.node_groups;
    let has_cores = groups.iter().any(|group| group.cpu_cores > 0.0);
    let has_memory = groups.iter().any(|group| group.memory_gib > 0.0);
    for row in rows {
        if !has_cores && row.resources.cpu_cores > 0.0 {
            row.resources.cpu_cores = 0.0;
            report.mend(
                "asks for CPU cores, which the cluster does not model: forgotten",
                1,
            );
        }
        if !has_memory && row.resources.memory_gib > 0.0 {
            row.resources.memory_gib = 0.0;
            report.mend("asks for memory, which the cluster does not model: forgotten", 1);
        }
    }
}

/// The largest gang of such jobs that the empty cluster could start: the best of its GPU types, on whose nodes every
/// GPU of the gang needs its own cores and memory.
pub(super) fn most_gpus(cluster: &ClusterSpec, class: &ModelClass, asked: &Resources) -> u32 {
    if asked.cpu_cores == 0.0 && asked.memory_gib == 0.0 {
        return u32::MAX;
    }
    let types = cluster.gpu_types.iter().zip(&class.speed);
    let usable = types.filter(|(_, speed)| **speed > 0.0);
    let of_type = |name: &str| {
        let groups = cluster.node_groups.iter().filter(|group| group.gpu_type == name);
        groups.fold(0_u32, |sum, group| {
            sum.saturating_add(group.count.saturating_mul(per_node(group, asked)))
        })
    };
    usable.map(|(gpu, _)| of_type(&gpu.name)).max().unwrap_or(0)
}

fn per_node(group: &NodeGroup, asked: &Resources) -> u32 {
    // Rounded down; the small term forgives the division's last bit, as 0.3 / 0.1 = 2.9999999999999996 would be 2.
    let fits = |has: f64, asked: f64| {
        if asked > 0.0 {
            (has / asked + 1e-9).floor() as u32
        } else {
            u32::MAX
        }
    };
    let by_cores = fits(group.cpu_cores, asked.cpu_cores);
    let by_memory = fits(group.memory_gib, asked.memory_gib);
    // Jobs that share a GPU need less of it, but no more of them fit a node than it has GPUs for one gang.
    group.gpus_per_node.min(by_cores).min(by_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(cpu_cores: f64, memory_gib: f64) -> Resources {
        Resources {
            cpu_cores,
            memory_gib,
            ..Resources::WHOLE_GPU
        }
    }

    #[test]
    fn the_scarcest_resource_of_a_node_bounds_the_gang() {
        // Two nodes of 4 GPUs, 16 cores, 100 GiB.
        let mut cluster = ClusterSpec::uniform(2, 4, 2);
        (
            cluster.node_groups[0].cpu_cores,
            cluster.node_groups[0].memory_gib,
        ) = (16.0, 100.0);
        let class = super::super::tenants::any_class(&cluster);
        let most = |cpu_cores, memory_gib| most_gpus(&cluster, &class, &asks(cpu_cores, memory_gib));
        assert_eq!(most(0.0, 0.0), u32::MAX);
        assert_eq!(most(4.0, 25.0), 8); // 4 by cores, 4 by memory
        assert_eq!(most(6.0, 1.0), 4); // 16 / 6 = 2 a node
        assert_eq!(most(1.0, 40.0), 4); // 100 / 40 = 2 a node
        assert_eq!(most(17.0, 1.0), 0);
        assert_eq!(most(1e-300, 0.0), 8);
        cluster.node_groups[0].cpu_cores = 0.3;
        assert_eq!(most_gpus(&cluster, &class, &asks(0.1, 0.0)), 6); // 3 a node
    }
}
