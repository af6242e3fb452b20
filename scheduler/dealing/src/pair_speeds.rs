//! What a job believes of its speed beside another, asked once for each pair of classes.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{ClassId, GpuTypeId, JobId};

/// Speeds of pairs of classes on each GPU type, as parts of their speeds alone; they do not change, so a planner keeps them.
#[derive(Clone, Debug, Default)]
pub struct PairSpeeds {
    num_classes: usize,
    /// NaN = not asked yet. `[type][victim][neighbour]`
    speeds: Vec<f64>,
}

impl PairSpeeds {
    /// Speed of a job beside another on a GPU type, as a part of its speed alone. (0, 1]
    pub fn of(&mut self, cluster: &Cluster, id: JobId, beside: JobId, kind: GpuTypeId) -> f64 {
        let class_of = |id: JobId| -> ClassId { cluster.job(id).request.class };
        let (victim, neighbour) = (class_of(id).index(), class_of(beside).index());
        // Whether two of a class are fused depends on more than the class.
        if victim == neighbour && cluster.class(class_of(id)).fusion.is_some() {
            return cluster.packed_speed(id, &[beside], kind);
        }
        let most = victim.max(neighbour);
        if most >= self.num_classes {
            self.num_classes = (most + 1).next_power_of_two();
            let num_cells = cluster.num_types() * self.num_classes * self.num_classes;
            self.speeds = vec![f64::NAN; num_cells];
        }
        let cell = (kind.index() * self.num_classes + victim) * self.num_classes + neighbour;
        if self.speeds[cell].is_nan() {
            self.speeds[cell] = cluster.packed_speed(id, &[beside], kind);
        }
        self.speeds[cell]
    }
}
