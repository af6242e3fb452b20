//! Who may be put on GPUs that others have: beside one job on exactly its GPUs, or on some GPUs of several jobs.
//!
//! At most [`PACKED_MAX`] whole-GPU jobs live on one GPU, their memory fits together, and fractions are not mixed with
//! them. Jobs that reserve CPU or host memory have their nodes to themselves in this respect: they are not packed.

use smallvec::SmallVec;

use super::shape::Shape;
use super::shared::PACKED_MAX;
use super::tables::Slice;
use super::{Cluster, JobState, NodeState, Sharing, bits};
use crate::ids::{GpuTypeId, JobId, NodeId};

impl Cluster {
    /// Whether a pending whole-GPU job may be put beside a running one, on exactly its GPUs.
    #[must_use]
    pub fn can_pack(&self, id: JobId, partner: JobId) -> bool {
        let (job, other) = (&self.jobs[id.index()], &self.jobs[partner.index()]);
        if self.capabilities.sharing == Sharing::Off
            || other.state != JobState::Running
            || other.is_sharing
            || self.shape(job.shape) != Shape::PLAIN
            || self.shape(other.granted) != Shape::PLAIN
        {
            return false;
        }
        let open = |slice: &Slice| {
            let node = &self.nodes[slice.node.index()];
            node.state == NodeState::Up && job.types >> node.gpu_type.0 & 1 == 1
        };
        other.num_held == job.request.num_gpus
            && other.placement.iter().all(open)
            && self.can_live_beside(id, partner, other.gpu_type)
            && self.has_room(self.demand(id))
    }

    /// Whether the memory of two whole-GPU jobs fits on one GPU of a type, and nobody measured that it does not.
    #[must_use]
    pub fn can_live_beside(&self, id: JobId, other: JobId, kind: GpuTypeId) -> bool {
        let memory_gib = f64::from(self.type_facts[kind.index()].memory_mib) / 1024.0;
        let pair = [self.resident_of(id), self.resident_of(other)];
        self.interference
            .can_share(&pair, kind.index(), memory_gib, Some(&self.pairs))
            .is_ok()
    }

    /// Who lives on a GPU: nobody, one whole-GPU job, or the residents of a shared one. In order of arrival.
    #[must_use]
    pub fn residents(&self, node: NodeId, gpu: u32) -> SmallVec<[JobId; PACKED_MAX]> {
        let row = self.nodes[node.index()].first_gpu + gpu;
        match self.shared.get(row) {
            Some(shared) => shared.residents.iter().map(|resident| resident.job).collect(),
            None => self.gpus[row as usize].into_iter().collect(),
        }
    }

    /// The GPUs of a node that a pending whole-GPU job may share with those who live there, as a bit mask; free ones are
    /// not among them. A gang may start on any of them, on GPUs of several jobs and on free ones at once. Quotas are not
    /// looked at ([`Cluster::has_room`]).
    #[must_use]
    pub fn joinable(&self, id: JobId, node: NodeId) -> u64 {
        let (job, of) = (&self.jobs[id.index()], &self.nodes[node.index()]);
        if self.capabilities.sharing == Sharing::Off
            || of.state != NodeState::Up
            || job.types >> of.gpu_type.0 & 1 == 0
            || self.shape(job.shape) != Shape::PLAIN
        {
            return 0;
        }
        let held = !of.free & (u64::MAX >> (64 - of.num_gpus));
        bits(held)
            .filter(|gpu| self.can_join(id, node, *gpu))
            .fold(0, |mask, gpu| mask | 1 << gpu)
    }

    /// Whether those who live on a GPU of an open node can take one more.
    fn can_join(&self, id: JobId, node: NodeId, gpu: u32) -> bool {
        let others = self.residents(node, gpu);
        let packable = |other: &JobId| {
            let other = &self.jobs[other.index()];
            self.shape(other.granted) == Shape::PLAIN && !other.is_forked
        };
        if others.is_empty() || others.len() >= PACKED_MAX || !others.iter().all(packable) {
            return false;
        }
        let kind = self.nodes[node.index()].gpu_type;
        others.iter().all(|other| self.can_live_beside(id, *other, kind))
    }
}
