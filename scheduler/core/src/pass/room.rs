//! Room for one gang while running jobs would be stopped for it, one after the other: a count of GPUs, or of tasks node by node.

use crate::cluster::{Cluster, TaskRoom};
use crate::ids::{GpuTypeId, JobId};

/// What is free once some jobs are stopped.
pub(super) trait Room {
    /// Whether the gang fits.
    fn fits(&self) -> bool;

    /// A job is stopped and gives back so many GPUs.
    fn give(&mut self, cluster: &Cluster, job: JobId, num_gpus: u32);

    /// Whether there may be more than the gang needs.
    fn has_more(&self) -> bool;

    /// Lets a job that was stopped go on, if the gang fits all the same.
    fn take_back(&mut self, cluster: &Cluster, job: JobId) -> bool;
}

/// GPUs of a type, for a gang that may be cut as one likes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    free: u32,
    wanted: u32,
}

impl Counted {
    /// Those that are free now; none if the type has too few.
    pub(super) fn now(cluster: &Cluster, kind: GpuTypeId, wanted: u32) -> Option<Counted> {
        let free = cluster.num_free_of(kind);
        (cluster.num_gpus_of(kind) >= wanted).then_some(Counted { free, wanted })
    }
}

impl Room for Counted {
    #[inline(always)]
    fn fits(&self) -> bool {
        self.free >= self.wanted
    }

    #[inline(always)]
    fn give(&mut self, _cluster: &Cluster, _job: JobId, num_gpus: u32) {
        self.free += num_gpus;
    }

    fn has_more(&self) -> bool {
        self.free > self.wanted
    }

    fn take_back(&mut self, cluster: &Cluster, job: JobId) -> bool {
        let held = cluster.job(job).num_held;
        let is_spare = self.free - held >= self.wanted;
        self.free -= if is_spare { held } else { 0 };
        is_spare
    }
}

impl Room for TaskRoom {
    fn fits(&self) -> bool {
        TaskRoom::fits(self)
    }

    fn give(&mut self, cluster: &Cluster, job: JobId, _num_gpus: u32) {
        let placement = &cluster.job(job).placement;
        placement
            .iter()
            .for_each(|slice| TaskRoom::give(self, cluster, job, *slice));
    }

    fn has_more(&self) -> bool {
        true
    }

    fn take_back(&mut self, cluster: &Cluster, job: JobId) -> bool {
        let placement = &cluster.job(job).placement;
        placement.iter().for_each(|slice| self.take(cluster, job, *slice));
        let is_spare = TaskRoom::fits(self);
        if !is_spare {
            Room::give(self, cluster, job, 0);
        }
        is_spare
    }
}
