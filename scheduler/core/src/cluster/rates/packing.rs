//! Which jobs may be put on GPUs that others have: beside one job on exactly its GPUs, or on some GPUs of several jobs.
//!
//! Jobs of one GPU whose class can be fused run as one program where they meet, as many as the memory holds (HFTA,
//! [`crate::physics::mixed::Fusion`]). Otherwise at most [`PACKED_MAX`] whole-GPU jobs live on one GPU, their memory fits together (of
//! hosts too, where sharing is guarded), and fractions are not mixed with them. Jobs that reserve CPU or host memory have their nodes
//! to themselves in this respect: they are not packed.

use smallvec::SmallVec;

use crate::cluster::jobs::shape::{Shape, units};
use crate::cluster::places::shared::PACKED_MAX;
use crate::cluster::tables::Slice;
use crate::cluster::{Cluster, JobState, NodeState, Sharing, bits};
use crate::ids::{GpuTypeId, JobId, NodeId};
use crate::physics::mixed::Fusion;

impl Cluster {
    /// Whether a pending whole-GPU job may be put beside a running one, on exactly its GPUs.
    #[must_use]
    pub fn can_pack(&self, id: JobId, partner: JobId) -> bool {
        let (job, other) = (&self.jobs.rows[id.index()], &self.jobs.rows[partner.index()]);
        if self.facts.capabilities.sharing == Sharing::Off
            || other.state != JobState::Running
            || other.is_sharing
            || self.shape(job.shape) != Shape::PLAIN
            || self.shape(other.granted) != Shape::PLAIN
        {
            return false;
        }
        let open = |slice: &Slice| {
            let node = &self.places.nodes[slice.node.index()];
            node.state == NodeState::Up && job.types >> node.gpu_type.0 & 1 == 1
        };
        other.num_held == job.request.num_gpus
            && other.placement.iter().all(open)
            && self.can_live_beside(id, partner, other.gpu_type)
            && self.has_room(self.demand(id))
    }

    /// Whether two whole-GPU jobs may run on one GPU of a type: fused, or because its memory holds both and they were not
    /// measured to run out of it. Where sharing is guarded, neither may be a gang, the host memory must hold both, and the guard
    /// must allow the pair.
    #[must_use]
    pub fn can_live_beside(&self, id: JobId, other: JobId, kind: GpuTypeId) -> bool {
        if self.fused(id, &[other], kind).is_some() {
            return true;
        }
        let is_gang = |id: JobId| self.jobs.rows[id.index()].request.num_gpus > 1;
        if self.facts.interference.guard.is_some()
            && (is_gang(id) || is_gang(other) || !self.host_memory_holds([id, other], kind))
        {
            return false;
        }
        let memory_gib = f64::from(self.facts.of_types[kind.index()].memory_mib) / 1024.0;
        let pair = [self.resident_of(id), self.resident_of(other)];
        self.facts
            .interference
            .can_share(&pair, kind.index(), memory_gib, Some(&self.facts.pairs))
    }

    /// Whether the host memory that comes with a GPU of a type holds what two jobs need there; it does where one of the three is not
    /// known.
    fn host_memory_holds(&self, pair: [JobId; 2], kind: GpuTypeId) -> bool {
        let needs_gib = pair.map(|id| {
            let class = self.jobs.rows[id.index()].request.class;
            self.facts.classes[class.index()].host_memory_gib
        });
        needs_gib.contains(&0.0)
            || needs_gib[0] + needs_gib[1] <= self.facts.of_types[kind.index()].host_memory_gib
    }

    /// The jobs on a GPU: none, one whole-GPU job, or the residents of a shared one. In order of arrival.
    #[must_use]
    pub fn residents(&self, node: NodeId, gpu: u32) -> SmallVec<[JobId; PACKED_MAX]> {
        let row = self.places.nodes[node.index()].first_gpu + gpu;
        match self.places.shared.get(row) {
            Some(shared) => shared.residents.iter().map(|resident| resident.job).collect(),
            None => self.places.gpus[row as usize].into_iter().collect(),
        }
    }

    /// The GPUs of a node that a pending whole-GPU job may share with the jobs on them, as a bit mask; free ones are not among
    /// them. A gang may start on any of them, on GPUs of several jobs and on free ones at once. Quotas are not looked at
    /// ([`Cluster::has_room`]).
    #[must_use]
    pub fn joinable(&self, id: JobId, node: NodeId) -> u64 {
        let (job, of) = (&self.jobs.rows[id.index()], &self.places.nodes[node.index()]);
        if self.facts.capabilities.sharing == Sharing::Off
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

    /// Whether a job can join the jobs on a GPU of an open node.
    pub(in crate::cluster) fn can_join(&self, id: JobId, node: NodeId, gpu: u32) -> bool {
        let others = self.residents(node, gpu);
        let packable = |other: &JobId| {
            let other = &self.jobs.rows[other.index()];
            self.shape(other.granted) == Shape::PLAIN && !other.is_forked
        };
        if others.is_empty() || !others.iter().all(packable) {
            return false;
        }
        let kind = self.places.nodes[node.index()].gpu_type;
        self.fused(id, &others, kind).is_some()
            || (others.len() < PACKED_MAX
                && others.iter().all(|other| self.can_live_beside(id, *other, kind)))
    }

    /// How a job runs fused with others on a GPU of a type; none if they cannot be fused, or are too many for its memory.
    pub(in crate::cluster) fn fused(&self, id: JobId, others: &[JobId], kind: GpuTypeId) -> Option<&Fusion> {
        let request = &self.jobs.rows[id.index()].request;
        let fusion = self.facts.classes[request.class.index()].fusion.as_ref()?;
        let alike = |id: JobId| {
            let other = &self.jobs.rows[id.index()].request;
            other.class == request.class && other.num_gpus == 1 && other.resources.gpu_milli == 1000
        };
        let (framework_mib, job_mib) = fused_mib(fusion);
        let room_mib = self.facts.of_types[kind.index()]
            .memory_mib
            .saturating_sub(framework_mib);
        let most = room_mib / job_mib;
        let fits = !others.is_empty() && others.len() < most as usize;
        (fits && alike(id) && others.iter().all(|other| alike(*other))).then_some(fusion)
    }

    /// Notes whether the jobs on a GPU run as one program, after one has come or left.
    pub(in crate::cluster) fn settle(&mut self, row: u32) {
        let Some(gpu) = self.places.shared.get(row) else {
            return;
        };
        let jobs: SmallVec<[JobId; PACKED_MAX]> = gpu.residents.iter().map(|resident| resident.job).collect();
        if let Some((first, others)) = jobs.split_first()
            && let Some(fusion) = self.fused(*first, others, gpu.gpu_type)
        {
            let (framework_mib, job_mib) = fused_mib(fusion);
            self.places.shared.fuse(row, framework_mib, job_mib);
        }
    }
}

/// Memory of the framework and of each job, whole MiB rounded up.
fn fused_mib(fusion: &Fusion) -> (u32, u32) {
    let job_mib = units(fusion.job_gib, 1024.0).max(1);
    (units(fusion.framework_gib, 1024.0), job_mib)
}
