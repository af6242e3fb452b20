//! Clusters for generated workloads: machine lists scaled to a wanted size, quotas, and what fits where.

use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, TenantSpec,
};

use serde::Deserialize;

use super::mix::Kind;
use crate::Error;
use crate::import::share_out;

/// Nodes of one shape in a published machine list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machines {
    pub count: u32,
    pub gpus_per_node: u32,
    pub gpu_type: String,
    /// Memory of one GPU, GiB.
    pub gpu_memory_gib: f64,
    #[serde(default)]
    pub cpu_cores: f64,
    #[serde(default)]
    pub memory_gib: f64,
}

/// `num_nodes` nodes in the proportions of the list, largest remainders first; shapes and GPU types that get no node are
/// left out. One tenant owns it all.
pub(super) fn scaled_cluster(list: &[Machines], num_nodes: u32, nodes_per_rack: u32) -> ClusterSpec {
    let shares: Vec<f64> = list.iter().map(|machines| f64::from(machines.count)).collect();
    let counts = share_out(&shares, num_nodes);
    let mut cluster = ClusterSpec {
        borrowing: true,
        ..ClusterSpec::default()
    };
    for (machines, count) in list.iter().zip(counts) {
        if count == 0 {
            continue;
        }
        if !cluster.gpu_types.iter().any(|gpu| gpu.name == machines.gpu_type) {
            cluster.gpu_types.push(GpuTypeSpec {
                name: machines.gpu_type.clone(),
                memory_gib: machines.gpu_memory_gib,
                mig: None,
            });
        }
        cluster.node_groups.push(NodeGroup {
            count,
            gpus_per_node: machines.gpus_per_node,
            gpu_type: machines.gpu_type.clone(),
            nodes_per_rack,
            cpu_cores: machines.cpu_cores,
            memory_gib: machines.memory_gib,
            ..NodeGroup::default()
        });
    }
    let num_gpus = capacity(&cluster);
    cluster.tenants = tenants(&[1.0], num_gpus);
    cluster
}

/// GPUs of the cluster.
pub(super) fn capacity(cluster: &ClusterSpec) -> u32 {
    u32::try_from(cluster.num_gpus()).unwrap_or(u32::MAX)
}

/// Tenants `tenant-1`, `tenant-2`, ... that share `num_gpus` by these weights.
pub(super) fn tenants(weights: &[f64], num_gpus: u32) -> Vec<TenantSpec> {
    let quotas = share_out(weights, num_gpus).into_iter().enumerate();
    let named = quotas.map(|(index, quota_gpus)| TenantSpec {
        name: format!("tenant-{}", index + 1),
        quota_gpus,
    });
    named.collect()
}

/// A class that runs equally fast on every type of the cluster.
pub(super) fn any_class(cluster: &ClusterSpec, locality: LocalityFactors) -> ModelClass {
    ModelClass {
        name: "any".into(),
        speed: vec![1.0; cluster.gpu_types.len()],
        locality,
        ..ModelClass::default()
    }
}

/// Largest gang that any tenant may start: the cluster's GPUs, or the largest quota where quotas bind; at most `wanted`.
pub(super) fn gang_max(cluster: &ClusterSpec, wanted: Option<u32>) -> u32 {
    let quotas = cluster.tenants.iter().map(|tenant| tenant.quota_gpus);
    let largest = if cluster.borrowing {
        capacity(cluster)
    } else {
        quotas.max().unwrap_or(0)
    };
    wanted.map_or(largest, |gang| gang.min(largest)).max(1)
}

/// Relative number of jobs with this gang by tenant: `jobs_of(tenant)` where the gang may start, else 0. Where no tenant may
/// start it, the tenant with the largest quota gets all of them.
pub(super) fn tenants_with_room(
    cluster: &ClusterSpec,
    num_gpus: u32,
    jobs_of: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let tenants = &cluster.tenants;
    let weight = |index: usize| {
        let has_room = cluster.borrowing || tenants[index].quota_gpus >= num_gpus;
        if has_room { jobs_of(index) } else { 0.0 }
    };
    let mut weights: Vec<f64> = (0..tenants.len()).map(weight).collect();
    if weights.iter().all(|weight| *weight == 0.0) {
        let quota_max = tenants.iter().map(|tenant| tenant.quota_gpus).max();
        let owner = tenants
            .iter()
            .position(|tenant| Some(tenant.quota_gpus) == quota_max);
        weights[owner.unwrap_or(0)] = 1.0;
    }
    weights
}

/// Whether the empty cluster holds the gang on one GPU type that its class can use, CPU and host memory included.
pub(super) fn holds(cluster: &ClusterSpec, class: &ModelClass, num_gpus: u32, resources: &Resources) -> bool {
    let usable = cluster.gpu_types.iter().zip(&class.speed);
    let mut usable = usable.filter(|(_, speed)| **speed > 0.0);
    usable.any(|(gpu, _)| {
        let groups = cluster
            .node_groups
            .iter()
            .filter(|group| group.gpu_type == gpu.name);
        let room: u64 = groups
            .map(|group| u64::from(group.count) * u64::from(room_on(group, resources)))
            .sum();
        room >= u64::from(num_gpus)
    })
}

/// Members of the gang that one empty node holds, each on a GPU of its own.
fn room_on(group: &NodeGroup, resources: &Resources) -> u32 {
    let by = |there: f64, asked: f64| {
        if asked > 0.0 {
            (there / asked + 1e-9).floor() as u32
        } else {
            u32::MAX
        }
    };
    group
        .gpus_per_node
        .min(by(group.cpu_cores, resources.cpu_cores))
        .min(by(group.memory_gib, resources.memory_gib))
}

/// Kinds that the cluster can hold, in their order.
pub(super) fn kinds_that_fit<'a>(
    cluster: &ClusterSpec,
    classes: &[ModelClass],
    kinds: Vec<Kind<'a>>,
) -> Vec<Kind<'a>> {
    kinds
        .into_iter()
        .filter(|kind| {
            let class = &classes[usize::from(kind.class)];
            holds(cluster, class, kind.num_gpus, &kind.resources)
        })
        .collect()
}

/// Checks locality factors.
pub(super) fn require_locality(locality: LocalityFactors) -> Result<(), Error> {
    let cluster = ClusterSpec::uniform(1, 1, 1);
    cluster.validate_class(&any_class(&cluster, locality))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> [Machines; 2] {
        [
            Machines {
                count: 3,
                gpus_per_node: 8,
                gpu_type: "A".into(),
                gpu_memory_gib: 32.0,
                cpu_cores: 16.0,
                memory_gib: 64.0,
            },
            Machines {
                count: 1,
                gpus_per_node: 2,
                gpu_type: "B".into(),
                gpu_memory_gib: 16.0,
                cpu_cores: 64.0,
                memory_gib: 64.0,
            },
        ]
    }

    #[test]
    fn machine_lists_keep_their_proportions_and_drop_what_gets_no_node() {
        let cluster = scaled_cluster(&list(), 8, 4);
        assert_eq!(
            (cluster.node_groups[0].count, cluster.node_groups[1].count),
            (6, 2)
        );
        assert_eq!((cluster.num_gpus(), cluster.tenants[0].quota_gpus), (52, 52));
        let one = scaled_cluster(&list(), 1, 4);
        assert_eq!((one.gpu_types.len(), one.node_groups[0].gpus_per_node), (1, 8));
        one.validate().unwrap();
    }

    #[test]
    fn a_gang_must_find_cores_and_memory_beside_its_gpus() {
        let cluster = scaled_cluster(&list(), 4, 4);
        let mut class = any_class(&cluster, LocalityFactors::NONE);
        let mut asked = Resources::WHOLE_GPU;
        // Three nodes of eight GPUs hold 24; the other type holds 2.
        assert!(holds(&cluster, &class, 24, &asked) && !holds(&cluster, &class, 25, &asked));
        // With 5 cores for each GPU a node of 16 cores holds three: 9 in all.
        asked.cpu_cores = 5.0;
        assert!(holds(&cluster, &class, 9, &asked) && !holds(&cluster, &class, 10, &asked));
        // 40 cores: only the second type has them, one node with one such job.
        asked.cpu_cores = 40.0;
        assert!(holds(&cluster, &class, 1, &asked) && !holds(&cluster, &class, 2, &asked));
        class.speed[1] = 0.0;
        assert!(!holds(&cluster, &class, 1, &asked));
    }

    #[test]
    fn where_quotas_bind_gangs_go_to_tenants_with_room() {
        let mut cluster = ClusterSpec::uniform(2, 8, 2);
        cluster.tenants = tenants(&[1.0, 3.0], 16);
        assert_eq!(tenants_with_room(&cluster, 8, |_| 1.0), [1.0, 1.0]);
        cluster.borrowing = false;
        assert_eq!(tenants_with_room(&cluster, 8, |_| 1.0), [0.0, 1.0]);
        assert_eq!(
            tenants_with_room(&cluster, 8, |tenant| f64::from(tenant == 0)),
            [0.0, 1.0]
        );
        assert_eq!((gang_max(&cluster, None), gang_max(&cluster, Some(4))), (12, 4));
    }
}
