//! What the cluster is made of.

use pleach_env::workload::Workload;
use serde::Serialize;

/// Equal nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodesRow {
    /// GPU type.
    pub gpu_type: String,
    /// Memory of one GPU, GiB.
    pub gpu_memory_gib: f64,
    /// Geometry of its MIG profiles, where it may be partitioned.
    pub mig: Option<String>,
    /// Nodes.
    pub num_nodes: u32,
    /// GPUs in each.
    pub gpus_per_node: u32,
    /// GPUs in all.
    pub num_gpus: u64,
    /// Racks.
    pub num_racks: u32,
    /// CPU cores of each node, where they are modelled.
    pub cpu_cores: Option<f64>,
    /// Host memory of each node, GiB, where it is modelled.
    pub memory_gib: Option<f64>,
    /// Storage bandwidth of each node, MB/s, where it is modelled.
    pub storage_mb_s: Option<f64>,
}

/// The cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterFigures {
    /// Nodes.
    pub num_nodes: u64,
    /// GPUs.
    pub num_gpus: u64,
    /// Racks.
    pub num_racks: u64,
    /// Tenants.
    pub num_tenants: usize,
    /// GPUs that belong to some tenant.
    pub quota_gpus: u64,
    /// Whether tenants may use what others leave idle.
    pub borrowing: bool,
    /// Model classes of the jobs.
    pub num_classes: usize,
    /// Group by group.
    pub nodes: Vec<NodesRow>,
}

impl ClusterFigures {
    /// The cluster of a workload.
    #[must_use]
    pub fn of(workload: &Workload) -> ClusterFigures {
        let spec = &workload.cluster;
        let modelled = |value: f64| Some(value).filter(|value| *value > 0.0);
        let nodes: Vec<NodesRow> = spec
            .node_groups
            .iter()
            .map(|group| {
                let gpu = spec.gpu_types.iter().find(|gpu| gpu.name == group.gpu_type);
                NodesRow {
                    gpu_type: group.gpu_type.clone(),
                    gpu_memory_gib: gpu.map_or(0.0, |gpu| gpu.memory_gib),
                    mig: gpu.and_then(|gpu| gpu.mig).map(|mig| mig.name().to_string()),
                    num_nodes: group.count,
                    gpus_per_node: group.gpus_per_node,
                    num_gpus: u64::from(group.count) * u64::from(group.gpus_per_node),
                    num_racks: group.count.div_ceil(group.nodes_per_rack),
                    cpu_cores: modelled(group.cpu_cores),
                    memory_gib: modelled(group.memory_gib),
                    storage_mb_s: modelled(group.storage_mb_s),
                }
            })
            .collect();
        ClusterFigures {
            num_nodes: nodes.iter().map(|row| u64::from(row.num_nodes)).sum(),
            num_gpus: spec.num_gpus(),
            num_racks: nodes.iter().map(|row| u64::from(row.num_racks)).sum(),
            num_tenants: spec.tenants.len(),
            quota_gpus: spec
                .tenants
                .iter()
                .map(|tenant| u64::from(tenant.quota_gpus))
                .sum(),
            borrowing: spec.borrowing,
            num_classes: workload.classes.len(),
            nodes,
        }
    }
}
