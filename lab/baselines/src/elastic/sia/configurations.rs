//! The configurations among which a job is given one: 1, 2, 4, ... GPUs of one node, or a multiple of whole nodes, of each
//! type (SOSP'23, section 3.3). There are about N + log2 R of N nodes of R GPUs, instead of the N R numbers of GPUs.

use pleach_scheduler::GpuTypeId;
use pleach_scheduler::cluster::Cluster;

/// So many GPUs of a type, on one node or on whole nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    /// Their type.
    pub kind: GpuTypeId,
    /// Their number.
    pub num_gpus: u32,
}

/// All configurations of a cluster with so many free GPUs of each type, type by type, ascending. A type's nodes count as
/// large as its largest.
pub(super) fn configurations(cluster: &Cluster, capacity: &[u32]) -> Vec<Configuration> {
    let mut all = Vec::new();
    for (kind, &capacity) in capacity.iter().enumerate() {
        let kind = GpuTypeId(kind as u8);
        let node_gpus = cluster.node_gpus_max_of(kind);
        if node_gpus == 0 {
            continue;
        }
        let parts = (0..32)
            .map(|power| 1 << power)
            .take_while(|gpus| *gpus < node_gpus);
        let whole = (1..).map(|nodes| nodes * node_gpus);
        let sizes = parts.chain(whole).take_while(|gpus| *gpus <= capacity);
        all.extend(sizes.map(|num_gpus| Configuration { kind, num_gpus }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{multi_type_cluster, preemptive_cluster};

    fn sizes(cluster: &Cluster, capacity: &[u32]) -> Vec<(u8, u32)> {
        let all = configurations(cluster, capacity);
        all.iter().map(|at| (at.kind.0, at.num_gpus)).collect()
    }

    #[test]
    fn a_job_gets_a_power_of_two_of_one_node_or_whole_nodes() {
        let of_one_type = |sizes: &[u32]| sizes.iter().map(|gpus| (0, *gpus)).collect::<Vec<_>>();
        assert_eq!(
            sizes(&preemptive_cluster(3, 4), &[12]),
            of_one_type(&[1, 2, 4, 8, 12])
        );
        assert_eq!(
            sizes(&preemptive_cluster(3, 4), &[11]),
            of_one_type(&[1, 2, 4, 8])
        );
        assert_eq!(
            sizes(&preemptive_cluster(2, 6), &[12]),
            of_one_type(&[1, 2, 4, 6, 12])
        );
        assert_eq!(sizes(&preemptive_cluster(2, 1), &[2]), of_one_type(&[1, 2]));
        let mixed = multi_type_cluster(&[1.0, 2.0], 2);
        assert_eq!(sizes(&mixed, &[2, 2]), [(0, 1), (0, 2), (1, 1), (1, 2)]);
    }
}
