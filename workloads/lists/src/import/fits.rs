//! What rows ask of resources that the cluster does not model.

use pleach_scheduler::cluster_spec::ClusterSpec;

use super::RawRow;
use super::draft::Mended;

/// Forgets what the rows ask of resources that no node of the cluster models, and notes it: a cluster given by the
/// caller may leave them out.
pub(super) fn drop_unmodelled(cluster: &ClusterSpec, rows: &mut [RawRow], mended: &mut Mended) {
    let groups = &cluster.node_groups;
    let has_cores = groups.iter().any(|group| group.cpu_cores > 0.0);
    let has_memory = groups.iter().any(|group| group.memory_gib > 0.0);
    for row in rows {
        if !has_cores && row.resources.cpu_cores > 0.0 {
            row.resources.cpu_cores = 0.0;
            mended.push((
                row.line,
                "asks for CPU cores, which the cluster does not model: forgotten",
            ));
        }
        if !has_memory && row.resources.memory_gib > 0.0 {
            row.resources.memory_gib = 0.0;
            mended.push((
                row.line,
                "asks for memory, which the cluster does not model: forgotten",
            ));
        }
    }
}
